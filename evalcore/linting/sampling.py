"""`sampling_rate` is about live traces at pre_ramp and pre_full; it switches nothing off (PC5 FR-11, R-5)."""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.problems import Problem, Severity
from schemas.judges import Classification, Milestone

CLAUSE = "PC5 FR-11, R-5"


@check(
    "sampling-leaves-some",
    CLAUSE,
    "A judge that is enabled samples some traces; at a rate of 0 the gates on live traces have nothing to go by.",
)
def sampling_leaves_some(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for judge, rule in corpus.rules.items():
        if rule.model.classification is Classification.QUALITY and not rule.model.sampling_rate > 0:
            message = (
                f"{judge} would score no trace: pre_ramp and pre_full have no sample, and pre_merge ignores the rate"
            )
            fix = "write a rate above 0; `enabled: false` switches a judge off"
            yield find(rule, ("sampling_rate",), message, fix)


@check(
    "sample-within-dataset",
    "PC5 §5.3, §5.5",
    "The dataset has the items that the gate at pre_merge requires.",
    Severity.WARNING,
)
def sample_within_dataset(corpus: Corpus, find: Find) -> Iterator[Problem]:
    if corpus.manifest is None:
        return
    items = corpus.manifest.model.dataset.items
    least = corpus.manifest.model.gates.minimum_sample.get(Milestone.PRE_MERGE)
    if least is not None and items < least:
        message = f"{items} items are fewer than the {least} that pre_merge requires: it could never pass"
        fix = "correct the number, or lower gates.minimum_sample.pre_merge"
        yield find(corpus.manifest, ("dataset", "items"), message, fix)


@check(
    "items-have-category",
    "PC5 §5.3",
    "The schema of an item has `input` and `metadata.category`: by the category it is known which judges fire.",
    Severity.WARNING,
)
def items_have_category(corpus: Corpus, find: Find) -> Iterator[Problem]:
    if corpus.manifest is None:
        return
    shape = corpus.manifest.model.schema_
    metadata = shape.get("metadata")
    if "input" not in shape:
        fix = "add `input: {type: string, required: true}`"
        yield find(corpus.manifest, ("schema",), "items have no input", fix)
    if not isinstance(metadata, dict) or "category" not in metadata:
        fix = "add `category: {type: string, required: true}` below metadata"
        yield find(corpus.manifest, ("schema", "metadata"), "items have no category, so no judge fires on them", fix)


CHECKS = (sampling_leaves_some, sample_within_dataset, items_have_category)
