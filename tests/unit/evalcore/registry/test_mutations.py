"""No field of a shipped file can be wrong in silence: a mutation is caught, or it changes nothing, or it is an edit
that shows and relaxes nothing (PC5 FR-9, AC-6; PF-9 FR-2, AC-8). What these words mean is in `fates`.

The short run takes some mutations of every file, the same each time; `MUTATION_SEED` takes others. The long one
(`pytest -m slow tests/unit/evalcore/registry/test_mutations.py`) takes all.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from random import Random

import pytest
import yaml

from evalcore.manifest.resolving import edited_by_hand
from evalcore.registry import files as assembling
from evalcore.registry.disk import read_tree
from evalcore.registry.files import MANIFEST
from evalcore.registry.registry import Registry, build
from evalcore.registry.rule_diff import changes
from evalcore.yaml import models
from schemas.judges import judge_id
from tests.unit.evalcore.registry.fates import TODAY, Escaped, Fate, Shipped, kept_by_hand, relaxed, strayed
from tests.unit.evalcore.registry.mutants import Mutant, dump, xml_mutants, yaml_mutants

FILES = read_tree(Path("configs"))
SEED = os.environ.get("MUTATION_SEED", "")
A_FILE = 14
"""So many mutations of each file in the short run."""


DECIDES = {"classification", "threshold", "floor", "tolerance", "enforcement", "enabled", "sampling_rate", "applies_to"}
"""Fields that the short run mutates in every way, in one safety judge, one quality judge and one vertical's file."""


@pytest.fixture(autouse=True)
def _each_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mutation leaves all files but one as they are."""
    monkeypatch.setattr(assembling, "read", _read)


_read = lru_cache(maxsize=256)(models.read)


@cache
def shipped(by_hand: bool = False) -> Shipped:
    return Shipped(kept_by_hand(FILES) if by_hand else FILES)


def mutants(name: str) -> list[Mutant]:
    files = shipped().files
    assert files.manifest is not None
    known = (files.rules, files.manifest.model.categories, files.manifest.model.archetypes, files.verticals)
    make = xml_mutants if name.endswith(".xml") else yaml_mutants
    return list(make(name, FILES.files[name], tuple(map(frozenset, known))))


def some(name: str, count: int = A_FILE) -> list[Mutant]:
    every = mutants(name)
    return Random(f"{name}{SEED}").sample(every, min(count, len(every)))


def escaped(chosen: list[Mutant], registry: Shipped) -> Iterator[str]:
    for mutant in chosen:
        try:
            registry.fate(mutant.file, mutant.raw)
        except Escaped as wrong:
            yield f"{mutant}: {wrong}"


@pytest.mark.parametrize("name", FILES.files)
def test_no_field_of_a_shipped_file_is_wrong_in_silence(name: str) -> None:
    assert list(escaped(some(name), shipped())) == []


@pytest.mark.parametrize(
    "name", ["rules/jailbreaking.yaml", "rules/response_quality.yaml", "rules/receipts/response_quality.yaml"]
)
def test_no_field_that_decides_is_wrong_in_silence_whatever_is_done_to_it(name: str) -> None:
    every = [mutant for mutant in mutants(name) if re.split(r"[.\[]", mutant.field)[0] in DECIDES]
    assert len(every) > 60
    assert list(escaped(every, shipped())) == []


def test_no_field_of_a_manifest_kept_by_hand_is_wrong_in_silence() -> None:
    assert list(escaped(some(MANIFEST, 3 * A_FILE), shipped(by_hand=True))) == []


SAMPLE = b"""
sample:
  scope: agent
  candidate:
    url: https://agents.internal/{agent_id}/{agent_version}/answer?by={agent_version}
    at_once: 4
    seconds: 30
    tries: 2
  adversarial: {name: red-team, version: 3, items: 120, project: consumer-agent}
  refresh_seconds: 86400
  size: {pre_ramp: 250, pre_full: 900}
"""


@pytest.mark.parametrize("count", [6 * A_FILE, pytest.param(0, marks=pytest.mark.slow, id="all")])
def test_no_field_of_a_manifests_sample_is_wrong_in_silence(count: int) -> None:
    """What the gates of a rollout judge (PC5 §5.5) is an edit that shows, or it is caught."""
    files = kept_by_hand(FILES)
    raw = files.files[MANIFEST] + SAMPLE
    registry = Shipped(files.with_file(MANIFEST, raw))
    every = [one for one in yaml_mutants(MANIFEST, raw, ()) if one.field.startswith("sample")]
    assert len(every) > 250
    chosen = Random(f"sample{SEED}").sample(every, count or len(every))
    assert list(escaped(chosen, registry)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES.files)
def test_no_field_of_a_shipped_file_is_wrong_in_silence_whatever_is_done_to_it(name: str) -> None:
    assert list(escaped(mutants(name), shipped())) == []


@pytest.mark.slow
def test_no_field_of_a_manifest_kept_by_hand_is_wrong_in_silence_whatever_is_done_to_it() -> None:
    assert list(escaped(mutants(MANIFEST), shipped(by_hand=True))) == []


def test_every_change_to_the_resolved_manifest_is_noticed_as_a_hand_edit() -> None:
    assert not edited_by_hand(FILES.files[MANIFEST].decode())
    for mutant in some(MANIFEST, 100):
        assert edited_by_hand(mutant.raw.decode(errors="replace")), mutant


# The proof itself: there are mutations of all three kinds, and what must not pass does not.


def test_every_field_of_every_file_is_mutated_in_many_ways() -> None:
    for name in FILES.files:
        by_field = Counter(mutant.field for mutant in mutants(name))
        assert by_field, name
        assert name.endswith(".xml") or min(by_field.values()) >= 8, by_field.most_common()[-1]
    assert sum(len(mutants(name)) for name in FILES.files) > 20_000


def fate(name: str, old: str, new: str) -> Fate:
    text = FILES.files[name].decode()
    assert old in text
    return shipped().fate(name, text.replace(old, new, 1).encode())


def test_a_fate_is_one_of_three() -> None:
    rule = "rules/ux_quality.yaml"
    assert fate(rule, "tolerance: 0.05", "tolerance: none").told == ("wrong-type",)
    assert fate(rule, "id: ux-quality\n", "") == Fate("same")
    assert fate(rule, "floor: 0.5", "floor: 0.55") == Fate("edit", ("ux_quality.floor",))
    assert fate(rule, "baseline_source: provisional_seed", "baseline_source: jade_calibration").kind == "caught"
    assert fate("rules/jailbreaking.yaml", "classification: safety_refusal", "classification: quality").kind == "caught"
    assert fate("../prompts/components/greeting.xml", '"greeting_quality"', '"greting_quality"').kind == "caught"
    own = '<judge id="greeting_quality"/>'
    assert fate("../prompts/components/greeting.xml", own, f'{own}<judge id="tool_compliance"/>').kind == "edit"
    assert fate("../prompts/components/greeting.xml", '"greeting_quality"', '"ux_quality"').told == ("rule-in-use",)
    assert fate("manifest-base.yaml", "    pre_ramp: 100\n", "") == Fate("same")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("rules/jailbreaking.yaml", {"classification": "quality"}, "is none any more"),
        ("rules/jailbreaking.yaml", {"sampling_rate": 0.5}, "does not run on everything"),
        ("rules/jailbreaking.yaml", {"applies_to": ["conversation"]}, "does not run on everything"),
        ("rules/jailbreaking.yaml", {"tolerance": 0.1}, "asks less than it did: tolerance"),
        ("rules/receipts/ux_quality.yaml", {"threshold": 0.6}, "asks less than the platform: threshold at pre_full"),
        ("rules/receipts/ux_quality.yaml", {"floor": 0.1}, "asks less than the platform: floor"),
        ("rules/receipts/ux_quality.yaml", {"tolerance": 0.5}, "asks less than the platform: tolerance"),
        ("rules/ux_quality.yaml", {"floor": 0.9}, "is below its floor"),
        ("rules/ux_quality.yaml", {"tolerance": 1}, "is no small part of its scale"),
    ],
)
def test_what_relaxes_a_judge_would_be_an_escape_if_nothing_caught_it(
    name: str, change: dict[str, object], words: str
) -> None:
    assert words in "; ".join(relaxed(shipped().registry, unchecked(name, change)))


def test_a_change_that_strays_into_another_judge_or_vertical_would_be_an_escape() -> None:
    found = changes(
        shipped().registry.judges.values(), unchecked("rules/ux_quality.yaml", {"floor": 0.6}).judges.values()
    )
    assert list(strayed("rules/ux_quality.yaml", found)) == []
    assert list(strayed("rules/fetch_legal.yaml", found))
    assert list(strayed("rules/receipts/ux_quality.yaml", found))


def unchecked(name: str, change: dict[str, object]) -> Registry:
    """The registry of files that no check has seen."""
    data = {**yaml.safe_load(FILES.files[name]), **change}
    files, _ = assembling.assemble(FILES.with_file(name, dump(data)), TODAY)
    assert judge_id(Path(name).stem) in files.rules
    return build(replace(files, today=TODAY))
