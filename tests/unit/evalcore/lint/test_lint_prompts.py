"""What a prompt reads: its variables in each context, templates and reports that stay inside, and never a user's signal
(PC5 §5.2, AC-9; PF-9 R-4)."""

from __future__ import annotations

import pytest

from evalcore.lint.names import escapes
from tests.unit.evalcore.lint.lint_cases import MANIFEST, OVERLAY, OVERRIDES, QUALITY, TRAVEL, Case, check_cases
from tests.unit.evalcore.registry.registry_files import OWN


def bound(path: str, context: str = "online", name: str = "output") -> str:
    return f"variables: {{{context}: {{{name}: '{path}'}}}}"


def everywhere(name: str, path: str) -> str:
    contexts = ", ".join(f"{context}: {{{name}: '{path}'}}" for context in ("offline", "online", "playground"))
    return f"variables: {{{contexts}}}"


def report(path: str) -> str:
    return f"calibration: {{report: '{path}'}}"


CASES = [
    Case(
        "variable-is-bound",
        {QUALITY: "prompt: 'Rate {{output}} for {{inputs}}.'"},
        f"{QUALITY}: variables.offline",
        {QUALITY: "prompt: 'Rate {output} for {{ input }}.'"},
        ("'input'",),
    ),
    Case(
        "variable-is-bound",
        {QUALITY: "variables: {online: {input: null}}"},
        f"{QUALITY}: variables.online",
        {QUALITY: "{variables: {online: {input: null}}, prompt: 'Rate {{output}}.'}"},
    ),
    Case(
        "variable-is-bound",
        {QUALITY: "task_introduction: 'You know {{ tools }}.'"},
        f"{QUALITY}: variables.playground",
    ),
    Case(
        "variable-is-bound",  # what only a dataset knows has to be bound there
        {QUALITY: "prompt: '{{input}} {{output}} {{expected_output}}'"},
        f"{QUALITY}: variables.offline",
        {
            QUALITY: "{prompt: '{{input}} {{output}} {{expected_output}}', "
            + bound("expected_output", "offline", "expected_output")
            + "}"
        },
    ),
    Case(
        "component-exists",
        {QUALITY: "components: [greeting, offer-discover]"},
        f"{QUALITY}: components[1]",
        {QUALITY: "components: [greeting, offer-discovery]"},
        ("offer_discovery",),
    ),
    Case(
        "prompt-has-variables",
        {QUALITY: "prompt: Rate the answer."},
        f"{QUALITY}: prompt",
        {QUALITY: "prompt: 'Rate {{output}}.'"},
    ),
    Case(
        "contexts-bind-alike",
        {QUALITY: bound("metadata.tools", "offline", "tools")},
        f"{QUALITY}: variables.online",
        {QUALITY: everywhere("tools", "metadata.tools")},
        ("online and playground",),
    ),
    Case(
        "contexts-bind-alike",
        {QUALITY: bound("output.tools", "online", "tools")},
        f"{QUALITY}: variables.offline",
        {QUALITY: bound("expected_output", "offline", "expected_output")},  # what only a dataset knows
    ),
    Case(
        "binding-of-user-signal",
        {QUALITY: bound("feedback_scores.user_signal_thumbs", name="mood")},
        f"{QUALITY}: variables.online.mood",
        {QUALITY: bound("feedback_scores.brevity", name="mood")},
        ("user_signal_", "R-4"),
    ),
    *(
        Case("binding-of-user-signal", {QUALITY: bound(path, name="mood")}, f"{QUALITY}: variables.online.mood")
        for path in (
            "feedback_scores",
            "feedback_scores[0].value",
            "trace",
            "trace.feedback_scores",
            "feedback_scores.user-signal-reroll",
            "feedback_scores.User_Signal_Thumbs.value",
            "feedback_scores.thumbs",
            "metadata.user_signal_thumbs[0]",
        )
    ),
    *(
        Case(
            "binding-of-user-signal",
            {QUALITY: bound("feedback_scores.reroll", name="mood")},
            f"{QUALITY}: variables.online.mood",
            {QUALITY: bound(path, name="mood")},
        )
        for path in ("metadata.thumbs", "output.trace_id", "metadata.signals")
    ),
    Case(
        "binding-of-user-signal",
        {QUALITY: bound("metadata.mood", name="user_signal_thumbs")},
        f"{QUALITY}: variables.online.user_signal_thumbs",
    ),
    Case(
        "output-is-the-agents",
        {QUALITY: bound("expected_output", "offline")},
        f"{QUALITY}: variables.offline.output",
        {QUALITY: bound("output.text", "offline")},
        ("as if an agent had said it",),
    ),
    Case(
        "output-is-the-agents",
        {QUALITY: bound("metadata.dataset_item_data.expected_output[0]", "playground")},
        f"{QUALITY}: variables.playground.output",
    ),
    Case("output-is-the-agents", {QUALITY: bound("input", "offline")}, f"{QUALITY}: variables.offline.output"),
    Case(
        "binding-is-known",
        {QUALITY: bound("outputs.text")},
        f"{QUALITY}: variables.online.output",
        {QUALITY: bound("output.text")},
        ("'output'",),
    ),
    Case(
        "binding-is-known",
        {QUALITY: bound("answer_key", "online", "key")},
        f"{QUALITY}: variables.online.key",
        {QUALITY: bound("answer_key", "offline", "key"), MANIFEST: "schema: {answer_key: {type: string}}"},
    ),
    Case(
        "vertical-name",
        {"rules/Shop Two/brevity.yaml": OWN},
        "rules/Shop Two/brevity.yaml",
        {"rules/shop-two/brevity.yaml": OWN},
    ),
    Case(
        "vertical-name",
        {MANIFEST: "categories: {shop_returns: {vertical: ../shop}}"},
        f"{MANIFEST}: categories.shop_returns.vertical",
        {MANIFEST: "categories: {shop_returns: {vertical: shop}}"},
    ),
    *(
        Case("vertical-name", {f"rules/{name}/brevity.yaml": OWN}, f"rules/{name}/brevity.yaml", says=("none of",))
        for name in ("other", "platform", "unregistered")
    ),
    Case(
        "vertical-name",
        {
            OVERRIDES: "overrides: [{judge: brevity, vertical: ../shop, milestone: pre_ramp, enforcement: warn, "
            "pull_request: x, justification: x, approved_on: 2026-11-20, expires: 2026-11-30}]"
        },
        f"{OVERRIDES}: overrides[0].vertical",
    ),
    Case(
        "vertical-name",
        {TRAVEL.replace("travel", "Travel"): "{vertical: Travel, categories: {general_qa: {}}}"},
        f"{TRAVEL.replace('travel', 'Travel')}: vertical",
        {TRAVEL: "{vertical: travel, categories: {general_qa: {}}}"},
    ),
    Case(
        "template-inside-folder",
        {QUALITY: "prompt: \"{% include '../secrets.txt' %} {{output}}\""},
        f"{QUALITY}: prompt",
        {QUALITY: "prompt: \"{% include 'parts/anchors.md' %} {{output}}\""},
        ("../secrets.txt",),
    ),
    *(
        Case("template-inside-folder", {QUALITY: f"task_introduction: |\n  {text}"}, f"{QUALITY}: task_introduction")
        for text in (
            '{%- extends "/etc/passwd" -%}',
            '{%+ include ["parts/a.md", "parts/../../b.md"] %}',
            "{% import 'c:/x' as x %}",
            "{%from '~/x' import y%}",
            "{% include '..\\\\x' %}",
            "{% include ' ../x' %}",
            "{% include\n    '../x' %}",
        )
    ),
    Case(
        "template-inside-folder",
        {QUALITY: report("../../reports/jade.md")},
        f"{QUALITY}: calibration.report",
        {QUALITY: report("docs/jade..1.md")},
    ),
    Case(
        "template-inside-folder",
        {OVERLAY: report("file:///etc/passwd")},
        f"{OVERLAY}: calibration.report",
        {OVERLAY: report("https://example.com/a/../b")},
    ),
]


def test_a_prompt_reads_what_it_may() -> None:
    check_cases(CASES)


@pytest.mark.parametrize(
    "path", ["..", "../x", "a/../x", "a/..", "a\\..\\x", "/x", "\\x", "~/x", "~root", "C:\\x", "c:x", " /x", "a/ .. /x"]
)
def test_a_path_that_leaves_its_folder_on_some_system_is_seen(path: str) -> None:
    assert escapes(path)


@pytest.mark.parametrize("path", ["x", "a/b", "a..b", "...", "a/...", ".a", "./a", "a~b", "Confluence 6331367452", ""])
def test_a_path_that_stays_is_left_alone(path: str) -> None:
    assert not escapes(path)
