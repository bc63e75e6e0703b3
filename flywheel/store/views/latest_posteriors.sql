-- Grain: one row per setting: the posterior recorded last; of two at once, the one with more
-- evidence.
CREATE OR REPLACE VIEW latest_posteriors AS

WITH posteriors AS (
    SELECT * FROM main.posteriors
),

latest AS (
    SELECT *
    FROM posteriors
    QUALIFY row_number() OVER (
        PARTITION BY setting_id
        ORDER BY recorded_at DESC, graded + ungraded DESC, posterior_id
    ) = 1
)

SELECT * FROM latest
