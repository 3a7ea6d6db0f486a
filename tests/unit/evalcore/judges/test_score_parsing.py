"""A judge's answer: what is not exactly a score on its scale is no score, and so can never count as passed."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.judges.evaluator import NoScore
from evalcore.judges.score_parsing import LONGEST_REASON, read
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import Judge, view
from evalcore.yaml.models import read as read_rule
from schemas.judges import RuleFile, ScoreType, judge_id
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

RULES = ROOT / "configs/rules"

REGISTRY = built(
    {"rules/helpfulness.yaml": "{dimensions: {tone-of-voice: {description: T.}, facts: {description: F.}}}"}
)
WHOLE, SHARE, HELD = REGISTRY.judge("brevity"), REGISTRY.judge("refusal"), REGISTRY.judge("honesty")
PARTED = REGISTRY.judge("helpfulness")
JUDGES = pytest.mark.parametrize("judge", [WHOLE, SHARE, HELD], ids=lambda judge: str(judge.score_type))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda of: st.lists(of) | st.dictionaries(st.text() | st.sampled_from(["score", "reason"]), of),
)


def answer(score: Any, **more: Any) -> str:
    return json.dumps({"score": score, "reason": "why", **more})


def is_unscored(text: str, judge: Judge) -> bool:
    try:
        read(text, judge)
    except NoScore:
        return True
    return False


def test_the_judges_here_are_of_each_score_type() -> None:
    assert (WHOLE.score_type, WHOLE.score_range) == (ScoreType.INTEGER, (1, 5))
    assert (SHARE.score_type, SHARE.score_range) == (ScoreType.FLOAT, (0, 1))
    assert HELD.score_type is ScoreType.BOOLEAN


@pytest.mark.parametrize(
    ("judge", "score", "value"),
    [
        (WHOLE, 1, 1.0),
        (WHOLE, 5, 5.0),
        (SHARE, 0, 0.0),
        (SHARE, 1, 1.0),
        (SHARE, 0.35, 0.35),
        (HELD, True, 1.0),
        (HELD, False, 0.0),
    ],
)
def test_a_score_on_the_scale_is_read(judge: Judge, score: Any, value: float) -> None:
    found = read(answer(score), judge)
    assert (found.value, found.reason, found.dimensions) == (value, "why", {})
    assert type(found.value) is float


@JUDGES
def test_not_applicable_is_an_answer_where_the_rule_allows_it(judge: Judge) -> None:
    if judge.rule.takes_na:
        assert read(answer("N/A"), judge).value is None
    else:
        assert is_unscored(answer("N/A"), judge)
    assert judge.rule.takes_na is not judge.safety, "what a rule file that says nothing means"
    assert is_unscored(answer("N/A"), replace(judge, rule=judge.rule.model_copy(update={"allow_na": False})))


def test_no_rule_file_makes_not_applicable_an_answer_of_a_safety_judge() -> None:
    (judge, *_) = [one for one in (WHOLE, SHARE, HELD) if one.safety]
    assert is_unscored(answer("N/A"), replace(judge, rule=judge.rule.model_copy(update={"allow_na": True})))


@pytest.mark.parametrize(
    ("judge", "score"),
    [(WHOLE, score) for score in (0, 6, -1, 4.0, 4.5, "4", True, None, [4], {"value": 4}, "n/a", "good", 10**30)]
    + [(SHARE, score) for score in (-0.01, 1.01, 95, "0.9", True, None, [0.5], math.nan, math.inf, -math.inf, "")]
    + [(HELD, score) for score in (1, 0, 1.0, "true", "True", "yes", None, [True])],
)
def test_what_is_not_of_the_type_or_off_the_scale_is_no_score(judge: Judge, score: Any) -> None:
    assert is_unscored(answer(score), judge)


@JUDGES
@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "true",
        "null",
        "Score: 5",
        "I would give this a 5 out of 5.",
        '{"score": 1}',
        '{"reason": "why"}',
        '{"score": 1, "reason": 7}',
        '{"score": 1, "reason": null}',
        '{"score": 1, "reason": "why", "confidence": 0.9}',
        '{"score": 1, "reason": "why", "dimensions": {}}',
        '{"Score": 1, "reason": "why"}',
        '[{"score": 1, "reason": "why"}]',
        '{"score": 1, "reason": "why"',
        '{"score": 1, "reason": "why"} {"score": 1, "reason": "why"}',
        "{'score': 1, 'reason': 'why'}",
        '{"score": 01, "reason": "why"}',
        "[" * 100_000,
        '{"score": ' + "9" * 10_000 + ', "reason": "why"}',
    ],
)
def test_no_answer_but_the_one_that_was_asked_for_is_read(judge: Judge, text: str) -> None:
    assert is_unscored(text, judge)


@pytest.mark.parametrize("judge", [WHOLE, SHARE, HELD])
@pytest.mark.parametrize("key", ["score", "reason"])
def test_a_key_that_stands_twice_is_refused(judge: Judge, key: str) -> None:
    """The last one would win, and it may be the user's."""
    good = json.dumps(True if judge is HELD else 1)
    value = good if key == "score" else '"why"'
    assert not is_unscored(f'{{"score": {good}, "reason": "why"}}', judge)
    assert is_unscored(f'{{"score": {good}, "reason": "why", "{key}": {value}}}', judge)


@pytest.mark.parametrize("opening", ["```", "```json", "```JSON", "```json "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_code_fence_around_the_whole_answer_is_taken_off(opening: str, end: str) -> None:
    assert read(f"{opening}{end}{answer(4)}{end}```", WHOLE).value == 4
    assert read(f"\n {opening}{end}{answer(4)}{end}```{end}", WHOLE).value == 4


@pytest.mark.parametrize(
    "text",
    [
        f"Here is my judgement:\n```json\n{answer(4)}\n```",
        f"```json\n{answer(4)}\n```\nI hope this helps.",
        f"```json\n{answer(2)}\n```\n```json\n{answer(5)}\n```",
        f"```json\n```json\n{answer(4)}\n```\n```",
        f"```python\n{answer(4)}\n```",
        f"```json\n{answer(4)}",
        f"{answer(4)}\n```",
        f"`{answer(4)}`",
    ],
)
def test_no_score_is_looked_for_in_prose_or_between_fences(text: str) -> None:
    assert is_unscored(text, WHOLE)


def test_each_dimension_is_scored_on_the_judges_scale() -> None:
    parts = {"tone-of-voice": 3, "facts": "N/A"}
    assert read(answer(4, dimensions=parts), PARTED).dimensions == {"tone_of_voice": 3.0, "facts": None}
    assert read(answer("N/A", dimensions=parts), PARTED).value is None
    assert read(answer(4, dimensions={"tone_of_voice": 3, "facts": 5}), PARTED).dimensions["facts"] == 5


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"facts": 4},
        {"facts": 4, "tone-of-voice": 6},
        {"facts": 4, "tone-of-voice": "good"},
        {"facts": 4, "tone-of-voice": 3, "wit": 3},
        {"facts": 4, "tone-of-voice": 3, "tone_of_voice": 5},
        [4, 3],
        None,
        5,
    ],
)
def test_a_dimension_too_many_too_few_or_off_the_scale_spoils_the_answer(parts: Any) -> None:
    assert is_unscored(answer(4, dimensions=parts), PARTED)


def test_a_judge_with_dimensions_has_to_score_them() -> None:
    assert is_unscored(answer(4), PARTED)


@given(ANYTHING)
def test_whatever_stands_as_a_score_is_one_on_the_scale_or_none(score: Any) -> None:
    for judge in (WHOLE, SHARE, HELD):
        low, high = judge.score_range
        try:
            value = read(answer(score), judge).value
        except NoScore:
            continue
        assert (value is None) == (score == "N/A")
        if value is not None:
            assert low <= value <= high
            assert value == score
            assert isinstance(score, bool) == (judge is HELD)


@given(st.text() | ANYTHING.map(json.dumps))
def test_no_text_does_anything_but_score_or_fail(text: str) -> None:
    for judge in (WHOLE, SHARE, HELD, PARTED):
        is_unscored(text, judge)


@given(st.text(min_size=1), st.integers(1, 5))
def test_words_around_an_answer_are_never_ignored(words: str, score: int) -> None:
    """But for white space."""
    for text in (words + answer(score), answer(score) + words):
        assert is_unscored(text, WHOLE) == bool(words.strip())


def test_a_reason_can_be_stored_whatever_the_model_wrote() -> None:
    found = read('{"score": 1, "reason": "\\ud800 ' + "x" * 10_000 + '"}', WHOLE)
    assert len(found.reason.encode()) == len(found.reason) == LONGEST_REASON


def test_an_error_shows_no_more_than_the_beginning_of_an_answer() -> None:
    with pytest.raises(NoScore) as raised:
        read(answer("a user's whole message " * 100), WHOLE)
    assert len(str(raised.value)) < 100


ASKING = [file for file in sorted(RULES.glob("*.yaml")) if "model: proposal-status:" not in file.read_text()]


@pytest.mark.parametrize("file", ASKING, ids=lambda file: file.stem)
def test_what_a_shipped_rubric_asks_for_is_what_is_read(file: Path) -> None:
    """The form of the answer stands at the end of each prompt, with S, D, A, V and R for what differs."""
    reading = read_rule(RuleFile, file.name, file.read_bytes())
    assert reading.parsed is not None
    judge = view(RegistryFiles(TODAY, rules={judge_id(file.stem): reading.parsed}), judge_id(file.stem), None)
    (form,) = re.findall(r"One JSON object and nothing else: (\{.*?\}+)\.", judge.rule.prompt, re.DOTALL)
    score = "true" if judge.score_type is ScoreType.BOOLEAN else "1"
    assert judge.rule.allow_na is not None, "a shipped rule says it"
    assert ('"N/A" as said above' in " ".join(judge.rule.prompt.split())) is judge.rule.takes_na
    for value in (score, '"N/A"') if judge.rule.takes_na else (score,):
        text = re.sub(r"(?<=: )[SDAV]\b", value, form)
        found = read(text, judge)
        assert (found.value, found.reason) == (1.0 if value == score else None, "R")
        assert found.dimensions.keys() == judge.dimensions.keys()
