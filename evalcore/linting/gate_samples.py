"""The adversarial set of pre_full: another dataset than the golden one, with a candidate to answer it (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.problems import Problem


@check(
    "adversarial-has-candidate",
    "PC5 §5.5",
    "Beside an adversarial set stands the endpoint of the candidate that answers it.",
)
def adversarial_has_candidate(corpus: Corpus, find: Find) -> Iterator[Problem]:
    if corpus.manifest is None:
        return
    sample = corpus.manifest.model.sample
    if sample.adversarial is not None and sample.candidate is None:
        message = "nobody would have outputs for the adversarial items, and none of them would be judged"
        fix = "add `candidate: {url: …}` below sample, or remove the set"
        yield find(corpus.manifest, ("sample", "adversarial"), message, fix)


@check(
    "adversarial-is-another-set",
    "PC5 §5.5",
    "The adversarial set is another dataset than the golden set.",
)
def adversarial_is_another_set(corpus: Corpus, find: Find) -> Iterator[Problem]:
    if corpus.manifest is None:
        return
    golden, adversarial = corpus.manifest.model.dataset, corpus.manifest.model.sample.adversarial
    if adversarial is not None and (adversarial.name, adversarial.project) == (golden.name, golden.project):
        message = f"{adversarial.name!r} is the golden set: its items would count twice at pre_full"
        fix = "name the adversarial set, or remove the section"
        yield find(corpus.manifest, ("sample", "adversarial", "name"), message, fix)


CHECKS = (adversarial_has_candidate, adversarial_is_another_set)
