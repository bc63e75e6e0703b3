"""Clustering: planted groups are found, shares are of all failures, order does not matter."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from flywheel.cluster import (
    BY_CODE,
    BY_DENSITY,
    BY_DISTANCE,
    MAX_CLUSTERS,
    class_tfidf,
    cluster_failures,
    draw_audit,
)
from flywheel.intervals import wilson
from schemas.failure import MODEL_LAYERS, Failure, FailureCluster, FailureLayer
from tests.factories import make_failure

CALLS = {
    "wrong-keep": "wrong-rows | failed=rows | read-csv file=# > deduplicate column=# keep=first"
    " > summarise by=# column=# > write-csv file=#",
    "no-write": "no-artifact | failed=exists | read-log file=# > count by=# | no table loaded",
    "bad-key": "tool-error | failed=columns | read-ini file=# > rename-key tool-error key=# to=#"
    " | no setting #",
}
FAMILY = {"wrong-keep": "orders", "no-write": "logs", "bad-key": "config"}


def failure(number: int, digest: str, **changes: object) -> Failure:
    return make_failure(attempt_id=f"att-{number:04d}", digest=digest, **changes)  # type: ignore[arg-type]


def planted(per_group: int, noise: int = 0) -> tuple[list[Failure], list[str]]:
    """Digests of three kinds with small variations, and some that are like nothing else."""
    rng = random.Random(3)
    kinds = [kind for kind in CALLS for _ in range(per_group)]
    extras = [" > sort order=descending", " > drop-missing column=#", ""]
    made = [
        failure(
            number,
            CALLS[kind] + rng.choice(extras),
            family=FAMILY[kind],
            code=CALLS[kind].split()[0],
        )
        for number, kind in enumerate(kinds)
    ]
    odd = [
        failure(900 + i, f"odd{i} " + " ".join(f"w{rng.randrange(9999)}" for _ in range(8)))
        for i in range(noise)
    ]
    return made + odd, kinds + ["noise"] * noise


def clusters_of(failures: list[Failure]) -> tuple[FailureCluster, ...]:
    return cluster_failures(failures, "cycle-0001", np.random.default_rng(1))


def agreement(clusters: tuple[FailureCluster, ...], ids: list[str], truth: list[str]) -> float:
    found = {member: i for i, cluster in enumerate(clusters) for member in cluster.members}
    return float(adjusted_rand_score(truth, [found[i] for i in ids]))


def test_no_failures_make_no_clusters() -> None:
    assert clusters_of([]) == ()
    assert clusters_of([failure(0, "x", layer=FailureLayer.INFRASTRUCTURE)]) == ()


@pytest.mark.parametrize(("per_group", "method"), [(8, BY_DISTANCE), (30, BY_DENSITY)])
def test_planted_groups_are_found(per_group: int, method: str) -> None:
    failures, truth = planted(per_group)
    clusters = clusters_of(failures)
    assert len(clusters) == 3
    assert {cluster.method for cluster in clusters} == {method}
    assert agreement(clusters, [f.attempt_id for f in failures], truth) == 1.0


def test_what_is_like_nothing_else_is_kept_as_noise_of_its_own() -> None:
    failures, _ = planted(30, noise=4)
    clusters = clusters_of(failures)
    (noise,) = [cluster for cluster in clusters if cluster.is_noise]
    assert set(noise.members) == {f.attempt_id for f in failures[-4:]}
    assert clusters[-1] == noise


def test_other_layers_are_grouped_by_code_alone() -> None:
    protocol = [
        failure(i, f"text{i}", layer=FailureLayer.PROTOCOL, code="malformed-call") for i in range(4)
    ]
    limit = [failure(9, "text1", layer=FailureLayer.CONTEXT, code="step-limit")]
    clusters = clusters_of(protocol + limit)
    assert [(cluster.size, cluster.method) for cluster in clusters] == [(4, BY_CODE), (1, BY_CODE)]
    assert [cluster.layer.value for cluster in clusters] == ["protocol", "context"]


def test_shares_are_of_all_failures_of_every_layer() -> None:
    infra = [failure(i, "boot", layer=FailureLayer.INFRASTRUCTURE) for i in range(15)]
    (cluster,) = clusters_of([*infra, *(failure(100 + i, "same words") for i in range(5))])
    assert (cluster.size, cluster.total, cluster.share) == (5, 20, 0.25)
    assert (cluster.lower, cluster.upper) == wilson(5, 20, 0.95)


@pytest.mark.parametrize("count", [1, 2, 49, 50, 80])
@pytest.mark.parametrize("digest", ["same words", "", " | > "])
def test_identical_digests_are_one_cluster(count: int, digest: str) -> None:
    (cluster,) = clusters_of([failure(i, digest) for i in range(count)])
    assert cluster.size == count
    assert not cluster.is_noise


@pytest.mark.parametrize("count", [40, 100])
def test_clusters_stay_few_enough_to_read(count: int) -> None:
    # `count / 5` kinds of failure that share no word.
    failures = [failure(i, f"a{i % (count // 5)} b{i % (count // 5)}") for i in range(count)]
    clusters = [cluster for cluster in clusters_of(failures) if not cluster.is_noise]
    assert len(clusters) == min(count // 5, MAX_CLUSTERS)


def test_a_label_names_the_family_the_code_and_what_is_telling() -> None:
    failures, _ = planted(8)
    labels = {next(iter(c.families)): c.label for c in clusters_of(failures)}
    assert labels["orders"].startswith("orders: wrong-rows (")
    assert "keep=first" in labels["orders"]
    assert labels["logs"].startswith("logs: no-artifact (")
    assert "#" not in "".join(labels.values())


def test_class_tfidf_gives_the_known_answer() -> None:
    weights = class_tfidf(np.array([[3.0, 0.0, 1.0], [1.0, 2.0, 1.0]]))
    expected = [[2.0794, 0.0, 1.0986], [0.6931, 2.1972, 1.0986]]
    np.testing.assert_allclose(weights, expected, atol=5e-5)


def test_examples_are_members_near_far_and_at_random() -> None:
    near = [failure(i, "read sum write to file") for i in range(9)]
    far = failure(50, "read sum write to file now")
    (cluster,) = clusters_of([far, *near])
    assert cluster.farthest[0] == far.attempt_id
    assert far.attempt_id not in cluster.nearest
    assert set(cluster.random) <= set(cluster.members)
    assert [len(x) for x in (cluster.nearest, cluster.farthest, cluster.random)] == [3, 3, 3]


def test_rules_and_families_are_counted_over_members() -> None:
    (cluster,) = clusters_of(
        [failure(1, "x", rules=("keep-last",)), failure(2, "x", rules=("at-least", "keep-last"))]
    )
    assert cluster.rules == {"at-least": 1, "keep-last": 2}
    assert cluster.families == {"orders": 2}


WORDS = st.lists(st.sampled_from(["read", "sum", "write", "keep=first", "round"]), max_size=5)
ANY_FAILURES = st.lists(
    st.tuples(WORDS, st.sampled_from(list(FailureLayer)), st.sampled_from(["a", "b"])), max_size=70
)


@settings(max_examples=40, deadline=None)
@given(rows=ANY_FAILURES, seed=st.integers(0, 99))
def test_any_order_of_the_same_failures_gives_the_same_clusters(
    rows: list[tuple[list[str], FailureLayer, str]], seed: int
) -> None:
    failures = [
        failure(i, " ".join(words), layer=layer, code=code)
        for i, (words, layer, code) in enumerate(rows)
    ]
    shuffled = random.Random(seed).sample(failures, len(failures))
    clusters = clusters_of(failures)
    assert clusters_of(shuffled) == clusters
    members = [member for cluster in clusters for member in cluster.members]
    ours = [f.attempt_id for f in failures if f.layer in MODEL_LAYERS]
    assert sorted(members) == sorted(ours)


def test_an_audit_draws_from_every_cluster_and_code_with_its_probability() -> None:
    failures, _ = planted(8)
    failures += [
        failure(500 + i, CALLS["wrong-keep"], family="orders", code="wrong-order") for i in range(2)
    ]
    clusters = clusters_of(failures)
    items = draw_audit(clusters, failures, 3, "cycle-0001", np.random.default_rng(2))
    by_code = {code: [i for i in items if i.code == code] for code in {f.code for f in failures}}
    assert {code: len(found) for code, found in by_code.items()} == {
        "wrong-rows": 3,
        "no-artifact": 3,
        "tool-error": 3,
        "wrong-order": 2,
    }
    assert {item.probability for item in by_code["wrong-rows"]} == {3 / 8}
    assert {item.probability for item in by_code["wrong-order"]} == {1.0}
    assert len({item.attempt_id for item in items}) == len(items)
    member_of = {member: c.cluster_id for c in clusters for member in c.members}
    assert all(item.cluster_id == member_of[item.attempt_id] for item in items)


def test_an_audits_weights_estimate_the_clusters_size() -> None:
    failures, _ = planted(10)
    clusters = clusters_of(failures)
    items = draw_audit(clusters, failures, 4, "cycle-0001", np.random.default_rng(5))
    assert sum(1 / item.probability for item in items) == pytest.approx(30)
