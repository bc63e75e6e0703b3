-- Grain: one row per hypothesis and judgement of it; one with NULLs where none was made yet.
CREATE OR REPLACE VIEW hypothesis_history AS

WITH hypotheses AS (
    SELECT * FROM main.hypotheses
),

verdicts AS (
    SELECT * FROM main.hypothesis_verdicts
),

joined AS (
    SELECT
        hypotheses.hypothesis_id,
        hypotheses.cycle_id AS proposed_in,
        hypotheses.cluster_id,
        hypotheses.claim,
        hypotheses.prediction ->> 'slice' AS slice,
        CAST(hypotheses.prediction ->> 'at_least' AS DOUBLE) AS at_least,
        hypotheses.refuted_if,
        verdicts.cycle_id AS judged_in,
        verdicts.judgement,
        verdicts.estimate,
        verdicts.lower,
        verdicts.upper,
        verdicts.reason
    FROM hypotheses
    LEFT JOIN verdicts USING (hypothesis_id)
)

SELECT * FROM joined
