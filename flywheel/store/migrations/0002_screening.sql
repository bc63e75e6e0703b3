-- Tasks with features and foreign fields; receipts with kill rate, conditions and cost; exploit
-- controls; what waits for a person and what was decided; proposals with what they cost.

ALTER TABLE tasks ADD COLUMN features JSON;
ALTER TABLE tasks ADD COLUMN outside JSON;

ALTER TABLE screen_reports ADD COLUMN kill_lower DOUBLE;
ALTER TABLE screen_reports ADD COLUMN kill_upper DOUBLE;
ALTER TABLE screen_reports ADD COLUMN unmeasured JSON;
ALTER TABLE screen_reports ADD COLUMN "references" BIGINT;
ALTER TABLE screen_reports ADD COLUMN references_passed BIGINT;
ALTER TABLE screen_reports ADD COLUMN boots BIGINT;

CREATE TABLE control_reports (
    family VARCHAR,
    environment_digest VARCHAR,
    grader_version VARCHAR,
    version_id VARCHAR,
    controls JSON,
    seconds DOUBLE,
    control_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (control_id)
);

CREATE TABLE review_items (
    version_id VARCHAR,
    name VARCHAR,
    reason VARCHAR,
    evidence VARCHAR,
    raised_at DOUBLE,
    item_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (item_id)
);

CREATE TABLE review_decisions (
    item_id VARCHAR,
    version_id VARCHAR,
    ruling VARCHAR,
    author VARCHAR,
    note VARCHAR,
    decided_at DOUBLE,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (item_id, decided_at)
);

CREATE TABLE proposals (
    proposer VARCHAR,
    run_id VARCHAR,
    number BIGINT,
    version_id VARCHAR,
    reason VARCHAR,
    evidence VARCHAR,
    tokens BIGINT,
    cost DOUBLE,
    proposal_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (proposal_id)
);
