"""What would go wrong and no one would see it: a variable that is never shown, a filter that names no one, a field of
items that means nothing (PC5 §5.2, §5.3; PF-9 §5.2, §5.5)."""

from __future__ import annotations

from tests.unit.evalcore.lint.lint_cases import MANIFEST, OVERLAY, PICKED, QUALITY, SAFETY, Case, check_cases


def filtered(field: str, value: str, operator: str = "'='") -> str:
    return f"filter: {{field: {field}, operator: {operator}, value: {value}}}"


def field(said: str) -> str:
    return f"schema: {{metadata: {{source: {said}}}}}"


AT = f"{MANIFEST}: schema.metadata.source"
CASES = [
    Case(
        "variable-is-used",
        {QUALITY: "prompt: 'Rate the answer to {{input}}.'"},
        f"{QUALITY}: variables.offline.output",
        {QUALITY: "prompt: 'Rate {output} for {{ input }}.'"},
        ("{{output}}",),
    ),
    Case(
        "filter-names-somebody",
        {OVERLAY: filtered("sub_agent_id", "shopp")},
        f"{OVERLAY}: filter.value",
        {OVERLAY: filtered("sub_agent_id", "shop")},
        ("did you mean 'shop'?", "never fire"),
    ),
    Case(
        "filter-names-somebody",
        {OVERLAY: filtered("vertical", "chat")},
        f"{OVERLAY}: filter.value",
        {OVERLAY: filtered("sub_agent", "chat")},
    ),
    Case(
        "filter-names-somebody",
        {OVERLAY: filtered("sub_agent_id", "[shop, finderr]", "in")},
        f"{OVERLAY}: filter.value",
        {OVERLAY: filtered("sub_agent_id", "[shop, finder]", "in")},
    ),
    Case(
        "filter-names-somebody",
        {QUALITY: filtered("metadata, key: agent_id", "findr")},
        f"{QUALITY}: filter.value",
        {QUALITY: filtered("metadata, key: agent_id", "somebody-else")},
        ("did you mean 'finder'?",),
    ),
    Case(
        "selection-picks-a-judge",
        {PICKED: "categories: {shop_returns: {quality_judges: []}}"},
        f"{PICKED}: categories.shop_returns",
        {PICKED: "categories: {shop_returns: {quality_judges: [helpfulness]}}"},
    ),
    Case(
        "project-of-one-vertical",
        {"verticals/travel.yaml": "project: shop-eval"},
        "verticals/travel.yaml: project",
        {"verticals/travel.yaml": "{project: shop-eval, workspace: another}"},
        ("shop's too",),
    ),
    Case("safety-floor-decides", {SAFETY: "floor: 0.05"}, f"{SAFETY}: floor", {SAFETY: "floor: 0.9"}),
    Case("item-field-shape", {MANIFEST: field("{type: strng}")}, f"{AT}.type", {MANIFEST: field("{type: string}")}),
    Case("item-field-shape", {MANIFEST: field("{required: true}")}, AT, {MANIFEST: field("{id: {type: string}}")}),
    Case("item-field-shape", {MANIFEST: field("{}")}, AT, {MANIFEST: field("{type: {type: string}}")}),
    Case("item-field-shape", {MANIFEST: field("string")}, AT),
    Case(
        "item-field-shape",
        {MANIFEST: field("{type: string, requird: true}")},
        f"{AT}.requird",
        {MANIFEST: field("{type: string, required: false}")},
        ("did you mean 'required'?",),
    ),
    Case("item-field-shape", {MANIFEST: field("{type: string, required: 1}")}, f"{AT}.required"),
    Case("item-field-shape", {MANIFEST: field("{type: string, description: ' '}")}, f"{AT}.description"),
    Case(
        "item-field-shape",
        {MANIFEST: field("{type: string, enum: [human, human]}")},
        f"{AT}.enum[1]",
        {MANIFEST: field("{type: string, enum: [human, ai]}")},
        ("twice",),
    ),
    Case("item-field-shape", {MANIFEST: field("{type: string, enum: []}")}, f"{AT}.enum"),
    Case("item-field-shape", {MANIFEST: field("{type: string, enum: [a, 1]}")}, f"{AT}.enum[1]"),
    Case("item-field-shape", {MANIFEST: field("{type: string, enum: [a, '']}")}, f"{AT}.enum[1]"),
]


def test_what_nobody_would_see_is_told() -> None:
    check_cases(CASES)
