-- Grain: one row per cycle, layer and code. The share is over all failures of the cycle, whatever
-- their layer.
CREATE OR REPLACE VIEW failure_shares AS

WITH failures AS (
    SELECT * FROM main.failures
),

counted AS (
    SELECT cycle_id, layer, code, count(*) AS failures
    FROM failures
    GROUP BY cycle_id, layer, code
),

shared AS (
    SELECT
        *,
        CAST(sum(failures) OVER (PARTITION BY cycle_id) AS BIGINT) AS total,
        failures / sum(failures) OVER (PARTITION BY cycle_id) AS share
    FROM counted
)

SELECT * FROM shared
