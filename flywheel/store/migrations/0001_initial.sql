-- Append-only tables, one a record type, one column a field (scalars as they are, nested values
-- as JSON), computed fields last. No foreign keys: DuckDB refuses some valid updates of referenced
-- rows and can't add a key later. No ENUM types: the schemas check the values. No secondary
-- indexes: one blocks renaming and retyping its column.

CREATE TABLE cycles (
    number BIGINT,
    parent VARCHAR,
    config JSON,
    sandbox VARCHAR,
    environment VARCHAR,
    started_at DOUBLE,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE tasks (
    family VARCHAR,
    family_version VARCHAR,
    rules JSON,
    seed BIGINT,
    operands JSON,
    brief JSON,
    sealed JSON,
    source JSON,
    task_id VARCHAR,
    version_id VARCHAR,
    prompt_hash VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (version_id)
);

CREATE TABLE fingerprints (
    version_id VARCHAR,
    task_id VARCHAR,
    prompt_hash VARCHAR,
    combination VARCHAR,
    operands JSON,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (version_id)
);

CREATE TABLE lineage (
    child VARCHAR,
    parent VARCHAR,
    kind VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (child, parent, kind)
);

CREATE TABLE split_assignments (
    cycle_id VARCHAR,
    task_id VARCHAR,
    version_id VARCHAR,
    component VARCHAR,
    split VARCHAR,
    admitted BOOLEAN,
    reason VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (cycle_id, version_id)
);

CREATE TABLE screen_reports (
    version_id VARCHAR,
    task_id VARCHAR,
    environment_digest VARCHAR,
    harness_version VARCHAR,
    grader_version VARCHAR,
    checks JSON,
    mutants BIGINT,
    mutants_killed BIGINT,
    survivors JSON,
    verdict VARCHAR,
    reason VARCHAR,
    trust VARCHAR,
    seconds DOUBLE,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (version_id, environment_digest, harness_version, grader_version, verdict)
);

CREATE TABLE settings (
    version_id VARCHAR,
    policy_version VARCHAR,
    harness_version VARCHAR,
    grader_version VARCHAR,
    environment_digest VARCHAR,
    budget JSON,
    sampling JSON,
    setting_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (setting_id)
);

CREATE TABLE attempts (
    run_id VARCHAR,
    purpose VARCHAR,
    arm VARCHAR,
    task_id VARCHAR,
    version_id VARCHAR,
    setting_id VARCHAR,
    attempt_index BIGINT,
    try_number BIGINT,
    policy_version VARCHAR,
    family VARCHAR,
    rules JSON,
    termination VARCHAR,
    infra JSON,
    grade JSON,
    seconds JSON,
    completion_tokens BIGINT,
    cost DOUBLE,
    started_at DOUBLE,
    attempt_id VARCHAR,
    verdict VARCHAR,
    reward DOUBLE,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (attempt_id)
);

CREATE TABLE trajectories (
    attempt_id VARCHAR,
    turns JSON,
    artifacts JSON,
    missing JSON,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (attempt_id)
);

CREATE TABLE posteriors (
    setting_id VARCHAR,
    task_id VARCHAR,
    version_id VARCHAR,
    policy_version VARCHAR,
    family VARCHAR,
    prior_alpha DOUBLE,
    prior_beta DOUBLE,
    passed BIGINT,
    graded BIGINT,
    ungraded BIGINT,
    attempts_digest VARCHAR,
    mean DOUBLE,
    lower DOUBLE,
    upper DOUBLE,
    p_low DOUBLE,
    p_high DOUBLE,
    bucket VARCHAR,
    posterior_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (posterior_id)
);

CREATE TABLE draws (
    cycle_id VARCHAR,
    arm VARCHAR,
    slot BIGINT,
    task_id VARCHAR,
    version_id VARCHAR,
    family VARCHAR,
    probability DOUBLE,
    reason VARCHAR,
    draw_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (draw_id)
);

CREATE TABLE acceptances (
    draw_id VARCHAR,
    cycle_id VARCHAR,
    arm VARCHAR,
    attempt_id VARCHAR,
    accepted BOOLEAN,
    reason VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (draw_id)
);

CREATE TABLE failures (
    attempt_id VARCHAR,
    cycle_id VARCHAR,
    task_id VARCHAR,
    family VARCHAR,
    rules JSON,
    layer VARCHAR,
    code VARCHAR,
    rule VARCHAR,
    evidence VARCHAR,
    digest VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (attempt_id)
);

CREATE TABLE failure_clusters (
    cycle_id VARCHAR,
    label VARCHAR,
    layer VARCHAR,
    size BIGINT,
    total BIGINT,
    share DOUBLE,
    lower DOUBLE,
    upper DOUBLE,
    families JSON,
    rules JSON,
    members JSON,
    nearest JSON,
    farthest JSON,
    random JSON,
    method VARCHAR,
    is_noise BOOLEAN,
    cluster_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (cluster_id)
);

CREATE TABLE audit_items (
    cycle_id VARCHAR,
    attempt_id VARCHAR,
    cluster_id VARCHAR,
    layer VARCHAR,
    code VARCHAR,
    probability DOUBLE,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (cycle_id, attempt_id)
);

CREATE TABLE sft_examples (
    cycle_id VARCHAR,
    arm VARCHAR,
    goal VARCHAR,
    tools JSON,
    turns JSON,
    provenance JSON,
    row_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (row_id)
);

CREATE TABLE preference_pairs (
    cycle_id VARCHAR,
    arm VARCHAR,
    goal VARCHAR,
    tools JSON,
    shared JSON,
    chosen JSON,
    rejected JSON,
    chosen_provenance JSON,
    rejected_provenance JSON,
    row_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (row_id)
);

CREATE TABLE rl_trajectories (
    cycle_id VARCHAR,
    arm VARCHAR,
    segments JSON,
    policy_version VARCHAR,
    sampling JSON,
    termination VARCHAR,
    truncated BOOLEAN,
    reward DOUBLE,
    group_id VARCHAR,
    group_dispatched BIGINT,
    group_graded BIGINT,
    provenance JSON,
    row_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (row_id)
);

CREATE TABLE rejected (
    cycle_id VARCHAR,
    arm VARCHAR,
    attempt_id VARCHAR,
    use VARCHAR,
    reason VARCHAR,
    row_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (row_id)
);

CREATE TABLE policy_versions (
    kind VARCHAR,
    parent VARCHAR,
    dataset_digest VARCHAR,
    rows BIGINT,
    tokens BIGINT,
    seed BIGINT,
    hyperparameters JSON,
    weights_digest VARCHAR,
    metrics JSON,
    seconds DOUBLE,
    cost DOUBLE,
    version VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (version)
);

CREATE TABLE arm_trainings (
    cycle_id VARCHAR,
    arm VARCHAR,
    parent VARCHAR,
    version VARCHAR,
    own_rows BIGINT,
    teacher_rows BIGINT,
    row_ids JSON,
    rehearsal_ids JSON,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (cycle_id, arm)
);

CREATE TABLE eval_reports (
    cycle_id VARCHAR,
    split VARCHAR,
    tasks_digest VARCHAR,
    arms JSON,
    comparisons JSON,
    unanswered JSON,
    report_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (report_id)
);

CREATE TABLE promotions (
    cycle_id VARCHAR,
    decision VARCHAR,
    candidate VARCHAR,
    next_parent VARCHAR,
    reason VARCHAR,
    rule JSON,
    read_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (cycle_id)
);

CREATE TABLE holdout_reads (
    cycle_id VARCHAR,
    holdout_version VARCHAR,
    purpose VARCHAR,
    number BIGINT,
    allowed BIGINT,
    candidate VARCHAR,
    parent VARCHAR,
    tasks BIGINT,
    estimate DOUBLE,
    lower DOUBLE,
    upper DOUBLE,
    level DOUBLE,
    effect VARCHAR,
    read_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (read_id)
);

CREATE TABLE hypotheses (
    cycle_id VARCHAR,
    cluster_id VARCHAR,
    claim VARCHAR,
    change JSON,
    prediction JSON,
    refuted_if VARCHAR,
    hypothesis_id VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (hypothesis_id)
);

CREATE TABLE hypothesis_verdicts (
    hypothesis_id VARCHAR,
    cycle_id VARCHAR,
    judgement VARCHAR,
    estimate DOUBLE,
    lower DOUBLE,
    upper DOUBLE,
    reason VARCHAR,
    recorded_at TIMESTAMP NOT NULL,
    PRIMARY KEY (hypothesis_id, cycle_id)
);

CREATE TABLE stages (
    cycle_id VARCHAR,
    stage VARCHAR,
    digest VARCHAR,
    completed_at TIMESTAMP NOT NULL,
    seconds DOUBLE,
    said VARCHAR,
    PRIMARY KEY (cycle_id, stage, digest)
);
