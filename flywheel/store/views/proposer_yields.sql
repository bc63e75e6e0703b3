-- Grain: one row per proposer: what it proposed, what became of it, and what that cost.
CREATE OR REPLACE VIEW proposer_yields AS

WITH proposals AS (
    SELECT * FROM main.proposals
),

screen_reports AS (
    SELECT * FROM main.screen_reports
),

accepted AS (
    SELECT DISTINCT version_id
    FROM screen_reports
    WHERE verdict = 'accepted'
),

counted AS (
    SELECT
        proposals.proposer,
        count(*) AS proposed,
        count(proposals.version_id) AS readable,
        count(accepted.version_id) AS accepted,
        CAST(sum(proposals.tokens) AS BIGINT) AS tokens,
        sum(proposals.cost) AS cost
    FROM proposals
    LEFT JOIN accepted ON proposals.version_id = accepted.version_id
    GROUP BY proposals.proposer
)

SELECT *, CASE WHEN accepted > 0 THEN cost / accepted END AS cost_per_accepted
FROM counted
