-- Grain: one row per attempt (each try is one). Reward is NULL unless graded.
CREATE OR REPLACE VIEW attempt_outcomes AS

WITH attempts AS (
    SELECT * FROM main.attempts
),

flattened AS (
    SELECT
        attempt_id,
        run_id,
        purpose,
        arm,
        task_id,
        version_id,
        setting_id,
        attempt_index,
        try_number,
        policy_version,
        family,
        verdict,
        reward,
        termination,
        termination IN (
            'step-limit', 'token-limit', 'time-limit', 'cost-limit', 'context-limit',
            'memory-limit', 'sandbox-killed'
        ) AS at_limit,
        infra ->> 'stage' AS infra_stage,
        infra ->> 'code' AS infra_code,
        CAST(infra ->> 'retryable' AS BOOLEAN) AS infra_retryable,
        grade ->> 'grader_version' AS grader_version,
        coalesce(list_sum(map_values(CAST(seconds AS MAP (VARCHAR, DOUBLE)))), 0) AS seconds_total,
        completion_tokens,
        cost,
        make_timestamp(CAST(round(started_at * 1e6) AS BIGINT)) AS started_at
    FROM attempts
)

SELECT * FROM flattened
