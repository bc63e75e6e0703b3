-- Grain: one row per verdict and reason, over the last receipt of each task version. A receipt that
-- says `unscreened` counts only where there is no other.
CREATE OR REPLACE VIEW screen_outcomes AS

WITH screen_reports AS (
    SELECT * FROM main.screen_reports
),

latest AS (
    SELECT *
    FROM screen_reports
    QUALIFY row_number() OVER (
        PARTITION BY version_id
        ORDER BY verdict = 'unscreened', recorded_at DESC, verdict DESC
    ) = 1
),

counted AS (
    SELECT
        verdict,
        reason,
        count(*) AS tasks,
        CAST(sum(mutants) AS BIGINT) AS mutants,
        CAST(sum(mutants_killed) AS BIGINT) AS mutants_killed
    FROM latest
    GROUP BY verdict, reason
)

SELECT * FROM counted
