-- Grain: one row per task version, environment, harness and grader: how often its reference ran,
-- at screening and ever after, and how often it passed. Ungraded runs are in no denominator. A
-- receipt's harness version ends in `+` and the version of screening, which runs do not hang on.
CREATE OR REPLACE VIEW reference_runs AS

WITH attempts AS (
    SELECT * FROM main.attempts
),

settings AS (
    SELECT * FROM main.settings
),

screen_reports AS (
    SELECT * FROM main.screen_reports
),

screened AS (
    SELECT
        version_id,
        environment_digest,
        split_part(harness_version, '+', 1) AS harness_version,
        grader_version,
        "references" AS runs,
        references_passed AS passed
    FROM screen_reports
),

later AS (
    SELECT
        settings.version_id,
        settings.environment_digest,
        settings.harness_version,
        settings.grader_version,
        1 AS runs,
        CASE WHEN attempts.verdict = 'passed' THEN 1 ELSE 0 END AS passed
    FROM attempts
    INNER JOIN settings ON attempts.setting_id = settings.setting_id
    WHERE attempts.policy_version LIKE 'reference@%'
        AND attempts.purpose <> 'screen'
        AND attempts.verdict <> 'ungraded'
),

counted AS (
    SELECT
        version_id,
        environment_digest,
        harness_version,
        grader_version,
        CAST(sum(runs) AS BIGINT) AS runs,
        CAST(sum(passed) AS BIGINT) AS passed
    FROM (SELECT * FROM screened UNION ALL SELECT * FROM later)
    GROUP BY ALL
)

SELECT * FROM counted
