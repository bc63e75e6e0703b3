-- Grain: one row per task: its current split. The last assignment of each version counts, and of a
-- task's versions the one admitted, so that a refused copy never moves the task it copies.
CREATE OR REPLACE VIEW task_splits AS

WITH assignments AS (
    SELECT * FROM main.split_assignments
),

latest_of_version AS (
    SELECT *
    FROM assignments
    QUALIFY row_number() OVER (
        PARTITION BY version_id
        ORDER BY recorded_at DESC, cycle_id DESC
    ) = 1
),

latest_of_task AS (
    SELECT task_id, version_id, cycle_id, component, split, admitted, reason, recorded_at
    FROM latest_of_version
    QUALIFY row_number() OVER (
        PARTITION BY task_id
        ORDER BY admitted DESC, recorded_at DESC, cycle_id DESC, version_id
    ) = 1
)

SELECT * FROM latest_of_task
