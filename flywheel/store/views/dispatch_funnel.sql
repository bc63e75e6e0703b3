-- Grain: one row per cycle and arm that drew. drawn = pending + not_returned + returned, and
-- returned = infrastructure + ungraded + graded. Pending: no acceptance was recorded yet.
CREATE OR REPLACE VIEW dispatch_funnel AS

WITH draws AS (
    SELECT * FROM main.draws
),

acceptances AS (
    SELECT * FROM main.acceptances
),

judged AS (
    SELECT
        draws.cycle_id,
        draws.arm,
        count(*) AS drawn,
        count(*) FILTER (acceptances.draw_id IS NULL) AS pending,
        count(*) FILTER (acceptances.reason = 'not-returned') AS not_returned,
        count(*) FILTER (acceptances.reason <> 'not-returned') AS returned,
        count(*) FILTER (acceptances.reason = 'infrastructure') AS infrastructure,
        count(*) FILTER (acceptances.reason = 'ungraded') AS ungraded,
        count(*) FILTER (acceptances.reason = 'graded') AS graded,
        count(*) FILTER (acceptances.accepted) AS accepted
    FROM draws
    LEFT JOIN acceptances USING (draw_id)
    GROUP BY draws.cycle_id, draws.arm
),

sft AS (
    SELECT cycle_id, arm, count(*) AS sft_rows
    FROM main.sft_examples
    GROUP BY cycle_id, arm
),

preference AS (
    SELECT cycle_id, arm, count(*) AS preference_rows
    FROM main.preference_pairs
    GROUP BY cycle_id, arm
),

rl AS (
    SELECT cycle_id, arm, count(*) AS rl_rows
    FROM main.rl_trajectories
    GROUP BY cycle_id, arm
),

trained AS (
    SELECT cycle_id, arm, json_array_length(row_ids) AS trained_rows
    FROM main.arm_trainings
),

joined AS (
    SELECT
        judged.*,
        coalesce(sft.sft_rows, 0) AS sft_rows,
        coalesce(preference.preference_rows, 0) AS preference_rows,
        coalesce(rl.rl_rows, 0) AS rl_rows,
        coalesce(trained.trained_rows, 0) AS trained_rows
    FROM judged
    LEFT JOIN sft USING (cycle_id, arm)
    LEFT JOIN preference USING (cycle_id, arm)
    LEFT JOIN rl USING (cycle_id, arm)
    LEFT JOIN trained USING (cycle_id, arm)
)

SELECT * FROM joined
