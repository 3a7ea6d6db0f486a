"""Ids, names of scores and the reserved prefix (PF-9 §5.2, R-4, AC-15)."""

from __future__ import annotations

import pytest

from tests.unit.evalcore.lint.lint_cases import BOOLEAN, MANIFEST, OVERLAY, QUALITY, Case, check_cases
from tests.unit.evalcore.registry.registry_files import HELPFULNESS, OWN, parsed_registry

DIMENSION = "dimensions: {{{}: {{description: A part of it.}}}}".format


def named(declared: str) -> str:
    """A rule file with this `id`, whose score is named after it."""
    return HELPFULNESS.replace("id: helpfulness", f"id: {declared}").replace("score_name: h", f"score_name: {declared}")


CASES = [
    Case("id-fits-file", {QUALITY: "id: brevity"}, f"{QUALITY}: id", {QUALITY: "id: Helpfulness"}, ("helpfulness",)),
    Case("id-fits-file", {OVERLAY: "id: helpful"}, f"{OVERLAY}: id", {OVERLAY: "id: helpfulness"}),
    Case(
        "id-fits-file",
        {"rules/tool_use.yaml": named("tools")},
        "rules/tool_use.yaml: id",
        {"rules/tool_use.yaml": named("tool-use")},
        ("id: tool-use", "tools.yaml"),
    ),
    Case(
        "id-is-plain",
        {"rules/2nd.yaml": named("2nd")},
        "rules/2nd.yaml",
        {"rules/second.yaml": named("second")},
        ("'2nd'",),
    ),
    Case("id-is-plain", {QUALITY: "id: HELPFULNESS"}, f"{QUALITY}: id"),
    Case(
        "id-is-plain",
        {"rules/a_b_c.yaml": named("a-b_c")},
        "rules/a_b_c.yaml: id",
        {"rules/a_b_c.yaml": named("a-b-c")},
    ),
    Case(
        "id-once",
        {QUALITY: "id: brevity"},
        f"{QUALITY}: id",
        {OVERLAY: "id: helpfulness"},  # the vertical's file is about the same judge, and is to say so
        ("rules/brevity.yaml",),
    ),
    Case(
        "judge-is-central",
        {"rules/shop/returns_quality.yaml": OWN},
        "rules/shop/returns_quality.yaml",
        {"rules/shop/brevity.yaml": OWN},
        ("pull request", "platform's owners", "every vertical can use it"),
    ),
    Case(
        "reserved-prefix",
        {QUALITY: "id: user_signal_helpfulness"},
        f"{QUALITY}: id",
        {QUALITY: "score_name: user signals seen"},
        ("PF-9 R-4", "goes through PF-9 review", "not through the judge registry"),
    ),
    Case(
        "reserved-prefix",
        {QUALITY: "score_name: people/helpfulness"},
        f"{QUALITY}: score_name",
        {QUALITY: "score_name: for people/helpfulness"},
        ("people's scores",),
    ),
    Case("reserved-prefix", {QUALITY: 'score_name: "Pe\\u200bople\\uff0fx"'}, f"{QUALITY}: score_name"),
    Case("reserved-prefix", {QUALITY: "id: user-signal-thumbs"}, f"{QUALITY}: id"),
    Case("reserved-prefix", {QUALITY: "score_name: user_signal_thumbs"}, f"{QUALITY}: score_name"),
    Case("reserved-prefix", {QUALITY: "score_name: User Signal Helpfulness"}, f"{QUALITY}: score_name"),
    Case("reserved-prefix", {QUALITY: "score_name: USER-SIGNAL-x"}, f"{QUALITY}: score_name"),
    Case("reserved-prefix", {QUALITY: 'score_name: "user_\\u200bsignal_x"'}, f"{QUALITY}: score_name"),
    Case("reserved-prefix", {QUALITY: 'score_name: "\\uff55ser_signal_x"'}, f"{QUALITY}: score_name"),
    Case("reserved-prefix", {"rules/user-signal-reroll.yaml": HELPFULNESS}, "rules/user-signal-reroll.yaml"),
    Case("reserved-prefix", {"rules/shop/user_signal_x.yaml": OWN}, "rules/shop/user_signal_x.yaml"),
    Case("reserved-prefix", {QUALITY: DIMENSION("user_signal_tone")}, f"{QUALITY}: dimensions.user_signal_tone"),
    Case(
        "reserved-prefix",
        {MANIFEST: "composites: {user_signal_all: {judges: [brevity, helpfulness]}}"},
        f"{MANIFEST}: composites.user_signal_all",
        {MANIFEST: "composites: {signals_of_users: {judges: [brevity, helpfulness]}}"},
    ),
    Case(
        "legacy-signal-name",
        {QUALITY: "score_name: Thumbs"},
        f"{QUALITY}: score_name",
        {QUALITY: DIMENSION("thumbs")},  # written as helpfulness.thumbs, which is no name of a signal
        ("PF-9 R-4",),
    ),
    Case("legacy-signal-name", {"rules/reroll.yaml": HELPFULNESS}, "rules/reroll.yaml"),
    Case(
        "score-name-once",
        {"rules/brevity.yaml": "score_name: Helpfulness"},
        f"{QUALITY}: score_name",
        {"rules/brevity.yaml": "score_name: Brevity of the Answer"},
        ("'brevity'",),
    ),
    Case(
        "score-name-once",
        {BOOLEAN: "score_name: refusal", "rules/refusal.yaml": "score_name: Refusals"},
        f"{BOOLEAN}: score_name",
        says=("or its id",),
    ),
    Case(
        "score-name-once",
        {QUALITY: DIMENSION("tone"), "rules/brevity.yaml": "score_name: helpfulness.tone"},
        "rules/brevity.yaml: score_name",
    ),
    Case(
        "dimension-name",
        {QUALITY: DIMENSION("pre_merge")},
        f"{QUALITY}: dimensions.pre_merge",
        {QUALITY: DIMENSION("tone-of-voice")},
    ),
    Case("dimension-name", {QUALITY: DIMENSION("default")}, f"{QUALITY}: dimensions.default"),
    Case("dimension-name", {QUALITY: DIMENSION("'Tone of voice'")}, f"{QUALITY}: dimensions.Tone of voice"),
    Case(
        "dimension-name",
        {QUALITY: "dimensions: {to-ne: {description: One.}, to_ne: {description: Two.}}"},
        f"{QUALITY}: dimensions.to_ne",
    ),
]


def test_who_a_judge_is_and_what_its_scores_are_called() -> None:
    check_cases(CASES)


@pytest.mark.parametrize("sign", ["\\e", "\\x7f", "\\u0085", "\\u200f", "\\u2028", "\\u202e", "\\u2066"])
@pytest.mark.parametrize("name", ["name", "score_name", "model"])
def test_a_name_has_no_sign_that_moves_a_cursor_or_turns_the_direction_of_writing(name: str, sign: str) -> None:
    """At its beginning, inside and at its end."""
    for written in (f"{sign}ab", f"a{sign}b", f"ab{sign}"):
        _, findings = parsed_registry({QUALITY: f'{name}: "{written}"'})
        assert [(one.field, one.severity) for one in findings] == [(name, "error")], written
    assert parsed_registry({QUALITY: f'{name}: "é 語 👩\\u200d🚀 b"'})[1] == []
