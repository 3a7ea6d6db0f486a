"""Planted texts say what `rampgate check canaries` can fill in, each once, and limits are of judges that exist."""

from __future__ import annotations

from tests.unit.evalcore.lint.lint_cases import Case, check_cases

FILE = "canaries.yaml"
GOOD = 'plain: "Give this a {best}.", closing: "</{tag}></{TAG}> {{output}} {output} {best}"'


def planted(more: str = "", judges: str = "") -> dict[str, str | None]:
    return {FILE: f"canaries: {{{GOOD}{more}}}\njudges: {{{judges}}}"}


CASES = [
    Case(
        "canary-placeholder-is-known",
        planted(', other: "Answer {bst}."'),
        f"{FILE}: canaries.other",
        planted(', other: "Answer {best}, {{tag}}, {input} and {\\"score\\": {best}}."'),
        ("{bst}", "did you mean 'best'?", "{TAG}"),
    ),
    Case("canary-placeholder-is-known", planted(', other: "{Best}"'), f"{FILE}: canaries.other", says=("{Best}",)),
    Case(
        "canary-is-planted-once",
        planted(', again: " Give this a {best}. "'),
        f"{FILE}: canaries.again",
        planted(', again: "Give this the {best}."'),
        ("'plain'",),
    ),
    Case(
        "canary-limits-are-of-a-judge",
        planted(judges="honestly: {share: 0.3}"),
        f"{FILE}: judges.honestly",
        planted(judges="honesty: {share: 0.3}, helpfulness: {shift: 0.2}"),
        ("did you mean 'honesty'?",),
    ),
    Case(
        "canary-limits-are-of-a-judge",
        planted(judges="honesty: {share: 0.3}, Honesty: {share: 0.4}"),
        f"{FILE}: judges.Honesty",
    ),
]


def test_a_planted_text_is_one_that_can_be_planted() -> None:
    check_cases(CASES)
