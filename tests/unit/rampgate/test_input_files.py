"""The one reader of JSON Lines: whatever the bytes are, it gives lines of their kind or one clear refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rampgate import input_files
from rampgate.calibration.folder import DrawnTurn, Rating, RoundAnswer, RoundPair
from rampgate.calibration.turns import ExportedTurn
from rampgate.checks.score_files import PairLine, RatingLine, SampledPair, SampledScore, ScoreLine, VersionedScore
from rampgate.checks.stored_outputs import StoredScore
from rampgate.console import Failure
from rampgate.input_files import BadFile, document, read
from rampgate.optimisation.holding import Decided
from rampgate.optimisation.inputs import JudgeScore
from rampgate.suite.result_files import ResultLine
from schemas.checks.standing import StandingRecord
from schemas.verticals import Vertical

KINDS: list[Any] = [
    DrawnTurn, Rating, RoundAnswer, RoundPair, ExportedTurn, PairLine, RatingLine, SampledPair, SampledScore, ScoreLine,
    VersionedScore, StoredScore, Decided, JudgeScore, ResultLine, StandingRecord,
]  # fmt: skip
NAMES = sorted(
    {name for kind in KINDS for name in getattr(kind, "__struct_encode_fields__", None) or kind.model_fields}
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES).map(
    lambda one: json.dumps(one).encode("utf-8", "surrogatepass")
)
FILES = st.binary() | st.lists(OBJECTS | st.binary(), max_size=3).map(b"\n".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(kind=st.sampled_from(KINDS), content=FILES)
def test_any_bytes_are_lines_of_the_kind_or_refused_in_one_form(kind: Any, content: bytes, tmp_path: Path) -> None:
    file, refused = tmp_path / "lines.jsonl", ""
    file.write_bytes(content)
    try:
        found = [line for _, line in read(file, kind)]
    except BadFile as error:
        found, refused = [], str(error)
    assert all(isinstance(line, kind) for line in found)
    assert not refused or refused.startswith(f"{file}:")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"scores": {"ok": [1]}},
            'scores.ok: must be a number, true, false, "N/A", or null where the judge gave none, got [1]',
        ),
        ({"slices": ["a", ""]}, "slices.1: must be a text that is not empty, got ''"),
        ({"trace": {"hash": 3}}, "trace.hash: must be a text, got 3"),
        ({"trace": []}, "trace: must be an object, got []"),
        ({"cost_usd": -1}, "cost_usd: must be a number from 0, got -1"),
        ({"case_id": None}, "case_id: must be a text that is not empty, or a whole number, got null"),
    ],
)
def test_the_part_that_is_wrong_is_named_with_what_it_must_be(
    fields: dict[str, Any], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"\n" + orjson.dumps({"case_id": "a", "sample": 0, "scores": {}, **fields}))
    with pytest.raises(BadFile) as refused:
        list(read(file, ResultLine))
    assert str(refused.value) == f"{file}:2: {told}"


def test_a_field_that_lacks_is_named_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    file.write_text('{"judge_id": "a", "item_id": 1, "human_score": 2}\n')
    with pytest.raises(
        BadFile, match=r":1: judge_score: must be a number, got nothing; leave out the line where there"
    ):
        list(read(file, PairLine))


def test_a_file_larger_than_any_is_refused_before_a_line_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_files, "LARGEST", 10)
    file = tmp_path / "scores.jsonl"
    file.write_text("{}\n{}\n{}\n{}\n")
    with pytest.raises(BadFile, match="must be at most 0 MB, got more"):
        list(read(file, ScoreLine))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", ": must be JSON"),
        (b'{"name": 3}', ": name: must be a valid string, got 3"),
        (b"[]", ": must be an object, got []"),
    ],
)
def test_a_document_that_is_none_of_its_model_ends_a_command_with_what_to_do(
    content: bytes, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "one.json"
    file.write_bytes(content)
    with pytest.raises(Failure) as refused:
        document(file, Vertical, "write it again")
    assert (told in str(refused.value), str(refused.value).endswith("; write it again")) == (True, True)
