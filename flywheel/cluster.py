"""Clustering: a cycle's failures go in, groups that look alike come out.

Only failures of the model's layers are clustered: protocol and context by their code, capability
by the words of the digest. Shares are of all failures, every layer. The same failures in any
order, with an equally seeded generator, give the same clusters.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, AgglomerativeClustering
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics.pairwise import cosine_distances

from flywheel.intervals import wilson
from schemas.failure import MODEL_LAYERS, AuditItem, Failure, FailureCluster, FailureLayer

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

DENSITY_FROM = 50
"""Fewer failures than this are too few for density: they are linked by average distance."""
DISTANCE = 0.5
"""Cosine distance up to which groups of digests are linked."""
COMPONENTS = 32
MAX_CLUSTERS = 10
"""Most clusters of capability failures: what a person reads in one sitting."""
EXAMPLES = 3
LABEL_TERMS = 3
NOISE = -1

BY_CODE = "code@1"
BY_DISTANCE = "tfidf-agglomerative@1"
BY_DENSITY = "tfidf-svd-hdbscan@1"

_TOKEN = r"[^\s|>]+"


@dataclass(frozen=True, slots=True)
class _Group:
    method: str
    members: list[Failure]
    vectors: Floats
    noise: bool


def cluster_failures(
    failures: Sequence[Failure], cycle_id: str, rng: np.random.Generator
) -> tuple[FailureCluster, ...]:
    """Return the clusters of `failures`, largest first; `rng` draws the random examples."""
    ours = sorted((f for f in failures if f.layer in MODEL_LAYERS), key=lambda f: f.attempt_id)
    if not ours:
        return ()
    groups = _groups(ours, _embed([_text(failure) for failure in ours]))
    groups.sort(key=lambda g: (g.noise, -len(g.members), g.members[0].attempt_id))
    terms = _top_terms([[_text(failure) for failure in group.members] for group in groups])
    return tuple(
        _describe(group, words, cycle_id, len(failures), rng)
        for group, words in zip(groups, terms, strict=True)
    )


def draw_audit(
    clusters: Sequence[FailureCluster],
    failures: Sequence[Failure],
    per_stratum: int,
    cycle_id: str,
    rng: np.random.Generator,
) -> tuple[AuditItem, ...]:
    """Return up to `per_stratum` failures of each cluster and code, drawn without replacement.

    `failures` holds at least every member of `clusters`.
    """
    by_id = {failure.attempt_id: failure for failure in failures}
    strata: defaultdict[tuple[str, str], list[Failure]] = defaultdict(list)
    for cluster in clusters:
        for member in sorted(cluster.members):
            strata[cluster.cluster_id, by_id[member].code].append(by_id[member])
    return tuple(
        AuditItem(
            cycle_id=cycle_id,
            attempt_id=stratum[index].attempt_id,
            cluster_id=cluster_id,
            layer=stratum[index].layer,
            code=code,
            probability=min(per_stratum, len(stratum)) / len(stratum),
        )
        for (cluster_id, code), stratum in sorted(strata.items())
        for index in _sample(len(stratum), per_stratum, rng)
    )


def class_tfidf(counts: Floats) -> Floats:
    """Return term weights by class (classes, terms): tf · log(1 + A / f).

    A is the mean number of words a class, f a term's frequency over all classes (Grootendorst
    2022, arXiv 2203.05794). Every term occurs somewhere.
    """
    mean = counts.sum() / len(counts)
    weights: Floats = counts * np.log1p(mean / counts.sum(axis=0))
    return weights


def _text(failure: Failure) -> str:
    """Return what is read: the digest, or where that is blank the code, so never nothing."""
    return failure.digest if failure.digest.strip(" |>\t\n") else failure.code


def _embed(texts: list[str]) -> Floats:
    """Return unit TF-IDF vectors of word 1-2-grams (texts, terms); reduced where texts are many.

    The seam for another embedding.
    """
    matrix = TfidfVectorizer(token_pattern=_TOKEN, ngram_range=(1, 2)).fit_transform(texts)
    if len(texts) < DENSITY_FROM or matrix.shape[1] <= COMPONENTS:
        return np.asarray(matrix.toarray())
    reduced = TruncatedSVD(n_components=COMPONENTS, random_state=0).fit_transform(matrix)
    lengths = np.linalg.norm(reduced, axis=1, keepdims=True)
    return np.asarray(reduced / np.maximum(lengths, np.finfo(float).tiny))


def _groups(failures: list[Failure], vectors: Floats) -> list[_Group]:
    """Split by code outside the capability layer, by content inside."""
    keys: dict[int, tuple[str, str | int]] = {}
    content = [i for i, f in enumerate(failures) if f.layer is FailureLayer.CAPABILITY]
    method, labels = _label(vectors[content])
    keys |= {i: (method, int(label)) for i, label in zip(content, labels, strict=True)}
    indices: defaultdict[tuple[str, str | int], list[int]] = defaultdict(list)
    for index, failure in enumerate(failures):
        indices[keys.get(index, (BY_CODE, f"{failure.layer}/{failure.code}"))].append(index)
    return [
        _Group(method, [failures[i] for i in members], vectors[members], noise=key == NOISE)
        for (method, key), members in indices.items()
    ]


def _label(vectors: Floats) -> tuple[str, Labels]:
    """Return the method that suits the number of vectors, and its labels (-1: the rest)."""
    if len(vectors) >= DENSITY_FROM:
        smallest = max(5, math.ceil(0.02 * len(vectors)))
        labels: Labels = HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(vectors)
        if (labels != NOISE).any():  # else nothing is denser than the rest, or all are the same
            return BY_DENSITY, _largest(_join(vectors, labels))
    return BY_DISTANCE, _largest(_link(vectors))


def _link(vectors: Floats) -> Labels:
    """Link by average cosine distance."""
    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    linkage = AgglomerativeClustering(
        n_clusters=None, distance_threshold=DISTANCE, metric="precomputed", linkage="average"
    )
    labels: Labels = linkage.fit_predict(cosine_distances(vectors))
    return labels


def _join(vectors: Floats, labels: Labels) -> Labels:
    """Link the centroids of dense groups, and take in the noise that is near one.

    Copies of a digest are infinitely dense: without this each would be a cluster of its own, and
    its slight variations noise.
    """
    groups = range(labels.max() + 1)
    centroids = np.stack([vectors[labels == label].mean(axis=0) for label in groups])
    distances = cosine_distances(vectors, centroids)
    near = np.where(distances.min(axis=1) <= DISTANCE, distances.argmin(axis=1), NOISE)
    dense = np.where(labels == NOISE, near, labels)
    return np.where(dense == NOISE, NOISE, _link(centroids)[dense])


def _largest(labels: Labels) -> Labels:
    """Keep the largest groups; forcing the others together would join what is unlike."""
    sizes = Counter(int(label) for label in labels if label != NOISE)
    kept = [label for label, _ in sizes.most_common(MAX_CLUSTERS)]
    return np.where(np.isin(labels, kept), labels, NOISE)


def _describe(
    group: _Group, terms: list[str], cycle_id: str, total: int, rng: np.random.Generator
) -> FailureCluster:
    members = group.members
    centre = group.vectors.mean(axis=0, keepdims=True)
    distances = cosine_distances(group.vectors, centre)[:, 0].round(9)
    ordered = [members[i].attempt_id for i in np.argsort(distances, kind="stable")]
    lower, upper = wilson(len(members), total, 0.95)
    return FailureCluster(
        cycle_id=cycle_id,
        label=_title(group, terms),
        layer=members[0].layer,
        size=len(members),
        total=total,
        share=len(members) / total,
        lower=lower,
        upper=upper,
        families=dict(sorted(Counter(failure.family for failure in members).items())),
        rules=dict(sorted(Counter(rule for f in members for rule in f.rules).items())),
        members=tuple(failure.attempt_id for failure in members),
        nearest=tuple(ordered[:EXAMPLES]),
        farthest=tuple(ordered[EXAMPLES:][-EXAMPLES:][::-1]),
        random=tuple(members[i].attempt_id for i in _sample(len(members), EXAMPLES, rng)),
        method=group.method,
        is_noise=group.noise,
    )


def _title(group: _Group, terms: list[str]) -> str:
    """Return `family: code (telling terms)`, with what no majority shares left open."""
    family = _majority([failure.family for failure in group.members]) or "several families"
    code = _majority([failure.code for failure in group.members]) or "several codes"
    rest = "the rest, " if group.noise else ""
    return f"{rest}{family}: {code}" + (f" ({', '.join(terms)})" if terms else "")


def _majority(values: Sequence[str]) -> str | None:
    value, count = min(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    return value if 2 * count > len(values) else None


def _top_terms(texts_by_group: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return each group's terms of the highest class-based TF-IDF; masked ones tell nothing."""
    vectorizer = CountVectorizer(token_pattern=_TOKEN)
    counts = vectorizer.fit_transform([" ".join(texts) for texts in texts_by_group]).toarray()
    weights = class_tfidf(counts.astype(np.float64))
    names = vectorizer.get_feature_names_out()
    ranked = [
        sorted((-weight, str(name)) for weight, name in zip(row, names, strict=True) if weight > 0)
        for row in weights
    ]
    return [[name for _, name in row if "#" not in name][:LABEL_TERMS] for row in ranked]


def _sample(size: int, most: int, rng: np.random.Generator) -> list[int]:
    """Return up to `most` of `range(size)`, drawn without replacement, in order."""
    return sorted(int(i) for i in rng.choice(size, min(size, most), replace=False))
