"""The table of paths that says which gates a change triggers (PC5 §5.5)."""

from __future__ import annotations

from tests.unit.evalcore.lint.lint_cases import Case, check_cases

FILE = "gate-paths.yaml"
EVERY = "{gates: [pre_merge, pre_ramp, pre_full], files: [%s]}"
NONE = "{gates: [], files: [%s]}"


def table(*classes: str) -> dict[str, str | None]:
    return {FILE: f"paths: [{', '.join(classes)}]"}


CASES = [
    Case(
        "path-pattern-decides",
        table(NONE % "src/**", EVERY % "src/prompts/*.txt"),
        f"{FILE}: paths[1].files[0]",
        table(EVERY % "src/prompts/*.txt", NONE % "src/**"),
        ("'src/**' comes first",),
    ),
    Case(
        "path-pattern-decides",
        table(EVERY % "src/**, src/**"),
        f"{FILE}: paths[0].files[1]",
        table(EVERY % "src/*, src/**"),
    ),
    Case(
        "judges-trigger-every-gate",
        table("{gates: [pre_merge], files: [configs/**]}"),
        f"{FILE}: paths[0].files[0]",
        table(EVERY % "configs/rules/**, configs/evaluation_manifest.yaml", NONE % "configs/**"),
        ("triggers pre_merge", "'configs/**'"),
    ),
    Case(
        "judges-trigger-every-gate",
        table(EVERY % "configs/rules/**", NONE % '"*.yaml"'),
        f"{FILE}: paths[1].files[0]",
        table(NONE % '"*.md"'),
        ("evaluation_manifest.yaml triggers no gate",),
    ),
]


def test_a_table_by_which_a_change_slips_through_is_told() -> None:
    check_cases(CASES)
