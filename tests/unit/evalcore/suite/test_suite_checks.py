"""Checks of a suite: a pattern, a schema, an exact text; 1, 0 or "can't tell", with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.suite.checks import Checked, Checker
from schemas.checks.suite import Check

SCHEMA = {"type": "object", "required": ["price"], "properties": {"price": {"type": "number", "minimum": 0}}}


def checked(output: Any, schema: Any = None, case: dict[str, Any] | None = None, **check: Any) -> Checked:
    return Checker(Check.model_validate(check), schema).check({**(case or {}), "output": output})


@pytest.mark.parametrize(
    ("output", "found"),
    [("it costs $12", 1.0), ("free", 0.0), ({"text": "$3"}, 1.0), ("", 0.0), (None, 0.0), ("\ud800 $1", 1.0)],
)
def test_a_pattern_is_searched_anywhere(output: Any, found: float) -> None:
    assert checked(output, regex=r"\$\d+").score == found
    assert checked(output, regex=r"\$\d+", absent=True).score == 1 - found


def test_what_is_too_long_to_be_searched_whole_is_not_called_absent() -> None:
    long = "x" * 2_000_000
    assert checked(long, regex="secret", absent=True).score is None
    assert checked(long, regex="secret").score is None
    assert checked(f"secret{long}", regex="secret", absent=True).score == 0.0


def test_no_pattern_is_too_slow() -> None:
    # An engine that backtracks would not end.
    assert checked("a" * 100_000 + "!", regex="(a+)+$").score == 0.0


@pytest.mark.parametrize(
    ("output", "score", "reason"),
    [
        ('{"price": 3}', 1.0, ""),
        ({"price": 3}, 1.0, ""),
        ('{"price": -3}', 0.0, "$.price: -3 is less than the minimum of 0"),
        ("{}", 0.0, "'price' is a required property"),
        ("three", 0.0, "it is no JSON"),
        ('{"price": NaN}', 0.0, "NaN is no JSON"),
        ("[" * 100_000, 0.0, "nested too deep"),
    ],
)
def test_an_output_fits_a_schema_or_says_where_not(output: Any, score: float, reason: str) -> None:
    found = checked(output, SCHEMA, json_schema="price.json")
    assert found.score == score
    assert reason in found.reason


def test_an_exact_text_is_the_cases_own() -> None:
    case = {"expected_output": "Paris"}
    assert checked(" Paris\n", case=case, equals="expected_output").score == 1.0
    assert checked("paris", case=case, equals="expected_output").score == 0.0
    assert checked("Paris", case={}, equals="expected_output") == Checked(
        None, "expected_output: the item has no 'expected_output'"
    )
    assert checked("Paris", case={"expected_output": None}, equals="expected_output").score is None


def test_a_field_that_the_answer_lacks_fails() -> None:
    assert checked("x", regex=".", field="tool_calls").score == 0.0


@pytest.mark.parametrize(
    ("check", "schema", "told"),
    [
        ({"regex": "(?=a)"}, None, "RE2 does not take it"),
        ({"json_schema": "s.json"}, {"type": "objekt"}, "s.json is no JSON Schema"),
    ],
)
def test_a_check_that_can_not_be_used_is_told_before_anything_runs(check: Any, schema: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Checker(Check.model_validate(check), schema)


@pytest.mark.parametrize("ref", ["http://127.0.0.1:9/x.json", "#/$defs/b", "other.json"])
def test_a_schema_refers_to_nothing_outside_of_it(ref: str) -> None:
    with pytest.raises(ValueError, match="is no place in it; nothing is fetched"):
        Checker(Check(json_schema="s.json"), {"properties": {"a": {"$ref": ref}}, "$defs": {"a": True}})


def test_a_schema_refers_to_its_own_parts() -> None:
    price = {"$defs": {"price": {"type": "number"}}, "properties": {"price": {"$ref": "#/$defs/price"}}}
    assert checked('{"price": 3}', price, json_schema="s.json").score == 1.0
    assert checked('{"price": "3"}', price, json_schema="s.json").score == 0.0
    named = {"$id": "urn:all", "$defs": {"b": {"$id": "urn:b", "type": "number"}}, "$ref": "urn:b"}
    assert checked("3", named, json_schema="s.json").score == 1.0
    astray = {**named, "$ref": "http://127.0.0.1:9/x.json"}
    assert checked("3", astray, json_schema="s.json").score is None
