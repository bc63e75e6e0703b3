-- Grain: one row per purpose, policy version and family. The rate is over graded attempts alone;
-- how many are ungraded stands beside it.
CREATE OR REPLACE VIEW success_by_policy_family AS

WITH outcomes AS (
    SELECT * FROM main.attempt_outcomes
),

counted AS (
    SELECT
        purpose,
        policy_version,
        family,
        count(*) AS attempts,
        count(*) FILTER (verdict = 'passed') AS passed,
        count(*) FILTER (verdict = 'failed') AS failed,
        count(*) FILTER (verdict = 'ungraded') AS ungraded,
        count(*) FILTER (verdict = 'failed' AND at_limit) AS failed_at_limit,
        avg(reward) AS success_rate,
        sum(seconds_total) AS seconds,
        CAST(sum(completion_tokens) AS BIGINT) AS completion_tokens,
        sum(cost) AS cost
    FROM outcomes
    GROUP BY purpose, policy_version, family
)

SELECT * FROM counted
