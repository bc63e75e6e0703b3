-- Grain: one row per cycle, arm, use and reason.
CREATE OR REPLACE VIEW refusals AS

WITH rejected AS (
    SELECT * FROM main.rejected
),

counted AS (
    SELECT cycle_id, arm, use, reason, count(*) AS count
    FROM rejected
    GROUP BY cycle_id, arm, use, reason
)

SELECT * FROM counted
