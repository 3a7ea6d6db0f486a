"""Manifest and rule files name the same judges; composites are groups that mean something (PC5 R-3, FR-4, FR-14,
NFR-4; PF-9 §3.1)."""

from __future__ import annotations

import pytest

from evalcore.lint.checks import lint
from evalcore.yaml.findings import Severity
from tests.unit.evalcore.lint.lint_cases import (
    ENOUGH,
    MANIFEST,
    QUALITY,
    RED_TEAM,
    SAFETY,
    SHOP,
    Case,
    check_cases,
)
from tests.unit.evalcore.registry.registry_files import HELPFULNESS, OWN, parsed_registry

BREVITY = "rules/brevity.yaml"
GROUP = "composites: {{style: {{judges: [brevity, helpfulness]{}}}}}".format
OVERLAYS = {f"rules/v{n}/helpfulness.yaml": OWN for n in range(20)}
"""With the five files of the registry and 24 or 25 more judges: 49 or 50 rule files."""


SET = "{name: own, version: 1, items: 60}"
OF = "{{name: own, version: 1, items: 60, {}}}"


def many(judges: int) -> dict[str, str | None]:
    return {**OVERLAYS, **{f"rules/judge_{n}.yaml": HELPFULNESS for n in range(judges)}}


CASES = [
    Case(
        "manifest-judge-exists",
        {MANIFEST: "categories: {general_qa: {judges: [helpfullness]}}"},
        f"{MANIFEST}: categories.general_qa.judges[0]",
        {MANIFEST: "categories: {general_qa: {judges: [Helpfulness]}}"},
        ("'helpfulness'",),
    ),
    Case(
        "manifest-judge-exists",
        {MANIFEST: "global_metrics: {judges: [refusal, honesty, grace]}"},
        f"{MANIFEST}: global_metrics.judges[2]",
    ),
    Case("manifest-judge-exists", {BREVITY: None}, f"{MANIFEST}: categories.shop_returns.judges[0]"),
    Case(
        "manifest-judge-exists",
        {MANIFEST: "{composites: {style: {judges: [brevity, grace]}}, categories: {general_qa: {judges: [style]}}}"},
        f"{MANIFEST}: composites.style.judges[1]",
        {MANIFEST: GROUP("") + "\ncategories: {general_qa: {judges: [style]}}"},
    ),
    Case(
        "manifest-judge-exists",
        {MANIFEST: GROUP("").replace("brevity, ", "style, ")},  # a composite is no member of one
        f"{MANIFEST}: composites.style.judges[0]",
    ),
    Case(
        "threshold-of-a-judge",
        {MANIFEST: "thresholds: {grace: 4}"},
        f"{MANIFEST}: thresholds.grace",
        {MANIFEST: "thresholds: {helpfulness: 4}"},
    ),
    Case(
        "threshold-of-a-judge",
        {MANIFEST: "thresholds: {helpfulness.tone: 4}"},
        f"{MANIFEST}: thresholds.helpfulness.tone",
        {
            MANIFEST: "thresholds: {helpfulness.tone: 4}",
            QUALITY: "dimensions: {tone: {description: Tone.}}",
        },
    ),
    Case(
        "threshold-of-a-judge",
        {MANIFEST: "thresholds: {helpfulness.premerge: 4}"},
        f"{MANIFEST}: thresholds.helpfulness.premerge",
        {MANIFEST: "thresholds: {helpfulness.pre_merge: 4}"},
    ),
    Case(
        "not-applicable-share-of-a-judge",
        {MANIFEST: "gates: {not_applicable_share_of: {grace: 0.9}}"},
        f"{MANIFEST}: gates.not_applicable_share_of.grace",
        {MANIFEST: "gates: {not_applicable_share_of: {Helpfulness: 0.9}}"},
    ),
    Case(
        "not-applicable-share-of-a-judge",
        {MANIFEST: "gates: {not_applicable_share_of: {helpfulness.tone: 0.9}}"},
        f"{MANIFEST}: gates.not_applicable_share_of.helpfulness.tone",
        {
            MANIFEST: "gates: {not_applicable_share_of: {helpfulness.tone: 0.9}}",
            QUALITY: "dimensions: {tone: {description: Tone.}}",
        },
    ),
    Case(
        "threshold-once",
        {
            "rules/tool_use.yaml": HELPFULNESS,
            MANIFEST: "{thresholds: {tool_use: 4, tool-use: 3}, categories: {general_qa: {judges: [tool_use]}}}",
        },
        f"{MANIFEST}: thresholds.tool-use",
        {MANIFEST: "thresholds: {helpfulness: 4, helpfulness.pre_ramp: 3}"},
    ),
    Case(
        "judge-listed-once",
        {MANIFEST: "categories: {general_qa: {judges: [helpfulness, Helpfulness]}}"},
        f"{MANIFEST}: categories.general_qa.judges[1]",
        {MANIFEST: "categories: {general_qa: {judges: [helpfulness, refusal]}}"},  # in two lists it is listed once each
    ),
    Case(
        "judge-listed-once",
        {MANIFEST: GROUP("").replace("brevity", "helpfulness")},  # where it would count twice
        f"{MANIFEST}: composites.style.judges[1]",
        {MANIFEST: GROUP("")},
        severity=Severity.ERROR,
    ),
    Case(
        "rule-in-use",
        {"rules/grace.yaml": HELPFULNESS, MANIFEST: "composites: {style: {judges: [brevity, grace]}}"},
        "rules/grace.yaml",
        {
            "rules/grace.yaml": HELPFULNESS,
            MANIFEST: "{composites: {style: {judges: [brevity, grace]}}, global_metrics: {judges: [style]}}",
        },
        ("no category",),
    ),
    Case(
        "rule-in-use",
        {MANIFEST: "categories: {shop_returns: {judges: [helpfulness]}}"},
        BREVITY,
        {MANIFEST: "global_metrics: {judges: []}"},  # safety judges run whether listed or not
    ),
    Case("judge-in-use-is-enabled", {QUALITY: "enabled: false"}, f"{QUALITY}: enabled", {SAFETY: "enabled: false"}),
    Case(
        "judge-in-use-is-enabled",
        {BREVITY: "enabled: false"},
        f"{BREVITY}: enabled",
        {"rules/grace.yaml": HELPFULNESS.replace("enabled: true", "enabled: false")},  # which nothing lists
    ),
    Case(
        "composite-name",
        {MANIFEST: "composites: {Helpfulness: {judges: [brevity, helpfulness]}}"},
        f"{MANIFEST}: composites.Helpfulness",
        {MANIFEST: GROUP("")},
    ),
    Case(
        "composite-name",
        {MANIFEST: GROUP(""), BREVITY: "score_name: Style"},
        f"{MANIFEST}: composites.style",
        {MANIFEST: GROUP(""), BREVITY: "score_name: Style of the answer"},
    ),
    Case(
        "composite-name",
        {MANIFEST: "composites: {2nd: {judges: [brevity, helpfulness]}}"},
        f"{MANIFEST}: composites.2nd",
    ),
    Case(
        "composite-name",
        {MANIFEST: "composites: {a-b: {judges: [brevity, helpfulness]}, a_b: {judges: [refusal, honesty]}}"},
        f"{MANIFEST}: composites.a_b",
    ),
    Case(
        "composite-weights",
        {MANIFEST: GROUP(", aggregate: weighted_mean")},
        f"{MANIFEST}: composites.style",
        {MANIFEST: GROUP(", aggregate: weighted_mean, weights: {brevity: 1, Helpfulness: 2}")},
    ),
    Case(
        "composite-weights",
        {MANIFEST: GROUP(", aggregate: min, weights: {brevity: 1, helpfulness: 2}")},
        f"{MANIFEST}: composites.style.weights",
    ),
    Case(
        "composite-weights",
        {MANIFEST: GROUP(", aggregate: weighted_mean, weights: {brevity: 1}")},
        f"{MANIFEST}: composites.style.weights",
        says=("helpfulness",),
    ),
    *(
        Case(
            "composite-weights",
            {MANIFEST: GROUP(f", aggregate: weighted_mean, weights: {{brevity: 1, helpfulness: {weight}}}")},
            f"{MANIFEST}: composites.style.weights.helpfulness",
        )
        for weight in ("0", "-1")
    ),
    Case(
        "composite-weights",
        {MANIFEST: GROUP(", aggregate: weighted_mean, weights: {brevity: 1, helpfulness: 1, refusal: 1}")},
        f"{MANIFEST}: composites.style.weights.refusal",
    ),
    Case(
        "composite-one-scale",
        {MANIFEST: "composites: {style: {judges: [helpfulness, refusal]}}"},
        f"{MANIFEST}: composites.style.judges",
        {MANIFEST: "composites: {style: {judges: [honesty, refusal]}}"},  # both from 0 to 1
    ),
    Case(
        "category-has-judges",
        {MANIFEST: "{global_metrics: {judges: []}, categories: {general_qa: {judges: []}}}"},
        f"{MANIFEST}: categories.general_qa.judges",
        {MANIFEST: "categories: {general_qa: {judges: []}}"},
    ),
    Case(
        "category-has-judges",
        {MANIFEST: "{global_metrics: {judges: []}, categories: {shop_returns: {judges: []}}}"},
        f"{MANIFEST}: categories.shop_returns.judges",
        {MANIFEST: "global_metrics: {judges: []}"},
    ),
    Case(
        "sampling-leaves-some",
        {QUALITY: "sampling_rate: 0"},
        f"{QUALITY}: sampling_rate",
        {QUALITY: "sampling_rate: 0.01"},
    ),
    Case(
        "sampling-leaves-some",
        {QUALITY: "sampling_rate: 1.0e-320"},
        f"{QUALITY}: sampling_rate",
        {QUALITY: "sampling_rate: 0.000001"},
        ("0.000001 or more",),
    ),
    Case(
        "sample-within-dataset",
        {MANIFEST: "dataset: {items: 19}"},
        f"{MANIFEST}: dataset.items",
        {MANIFEST: "dataset: {items: 20}"},
    ),
    Case(
        "sample-within-dataset",
        {MANIFEST: "gates: {minimum_sample: {pre_merge: 400}}"},
        f"{MANIFEST}: dataset.items",
        {MANIFEST: "gates: {minimum_sample: {pre_full: 400}}"},  # of live traces
    ),
    Case(
        "sample-within-dataset",
        {SHOP: f"dataset: {SET.replace('60', '19')}"},
        f"{SHOP}: dataset.items",
        {SHOP: f"dataset: {SET}"},
    ),
    Case(
        "sample-within-dataset",
        {MANIFEST: f"datasets: {{travel: {SET.replace('60', '19')}}}"},
        f"{MANIFEST}: datasets.travel.items",
    ),
    Case(
        "dataset-of-a-vertical",
        {MANIFEST: f"datasets: {{shopp: {SET}}}"},
        f"{MANIFEST}: datasets.shopp",
        {MANIFEST: f"datasets: {{travel: {SET}}}"},
        ("did you mean 'shop'?",),
    ),
    Case(
        "dataset-in-own-project",
        {SHOP: f"dataset: {OF.format('project: travel-eval')}"},
        f"{SHOP}: dataset.project",
        {SHOP: f"dataset: {OF.format('project: shop-eval')}"},
        ("shop-eval",),
    ),
    Case(
        "dataset-in-own-project",
        {SHOP: f"dataset: {OF.format('project: travel-eval')}"},
        f"{SHOP}: dataset.project",
        {SHOP: f"dataset: {SET}"},
    ),
    Case(
        "rollout-sample-composed",
        {MANIFEST: "sample: {adversarial: {name: red-team, version: 2, items: 5}}"},
        f"{MANIFEST}: sample.candidate",
        {MANIFEST: RED_TEAM},
        ("no golden item", "`sample: {candidate"),
    ),
    Case(
        "rollout-sample-composed",
        {MANIFEST: "sample: {candidate: {url: 'http://agents'}}"},
        f"{MANIFEST}: sample.adversarial",
        {MANIFEST: RED_TEAM.replace("sample: {", "sample: {scope: agent, ")},
        ("no adversarial item", "`sample: {adversarial"),
    ),
    Case(  # the platform's set is asked for, whatever a vertical adds to it
        "rollout-sample-composed",
        {
            MANIFEST: "sample: {candidate: {url: 'http://agents'}}",
            SHOP: f"dataset: {OF.format('adversarial: {name: edges, version: 1, items: 5}')}",
        },
        f"{MANIFEST}: sample.adversarial",
        {MANIFEST: RED_TEAM},
    ),
    Case(
        "rollout-sample-composed",
        {MANIFEST: RED_TEAM.replace("items: 5", "items: 0")},
        f"{MANIFEST}: sample.adversarial.items",
        {MANIFEST: RED_TEAM},
    ),
    *(
        Case("rollout-sample-composed", {MANIFEST: nothing}, f"{MANIFEST}: sample.{lacking}", {MANIFEST: RED_TEAM})
        for lacking in ("candidate", "adversarial")
        for nothing in ("sample: {}", "schema: {input: {type: string}}")
    ),
    Case(
        "adversarial-has-candidate",
        {SHOP: f"dataset: {OF.format('adversarial: {name: edges, version: 1, items: 5}')}"},
        f"{SHOP}: dataset.adversarial",
        {
            SHOP: f"dataset: {OF.format('adversarial: {name: edges, version: 1, items: 5}')}",
            MANIFEST: "sample: {candidate: {url: 'http://agents'}}",
        },
    ),
    *(
        Case(
            "adversarial-is-another-set",
            {SHOP: f"dataset: {OF.format(f'adversarial: {name}')}", MANIFEST: RED_TEAM},
            f"{SHOP}: dataset.adversarial.name",
            {SHOP: f"dataset: {OF.format('adversarial: {name: edges, version: 1, items: 5}')}", MANIFEST: RED_TEAM},
        )
        for name in ("{name: own, version: 2, items: 5}", "{name: red-team, version: 2, items: 5}")
    ),
    Case(
        "adversarial-has-candidate",
        {MANIFEST: "sample: {adversarial: {name: red-team, version: 1, items: 5}}"},
        f"{MANIFEST}: sample.adversarial",
        {
            MANIFEST: "sample: {candidate: {url: 'http://agents/{agent_version}'}, "
            "adversarial: {name: red-team, version: 1, items: 5}}"
        },
    ),
    Case(
        "adversarial-is-another-set",
        {
            MANIFEST: "{dataset: {name: golden}, "
            "sample: {candidate: {url: 'http://agents'}, adversarial: {name: golden, version: 2, items: 5}}}"
        },
        f"{MANIFEST}: sample.adversarial.name",
        {
            MANIFEST: "{dataset: {name: golden}, "
            "sample: {candidate: {url: 'http://agents'}, adversarial: {name: red-team, version: 2, items: 5}}}"
        },
    ),
    Case(
        "items-have-category",
        {MANIFEST: "schema: {metadata: {category: null}}"},
        f"{MANIFEST}: schema.metadata",
        {MANIFEST: "schema: {expected_output: {type: string}}"},
    ),
    Case("items-have-category", {MANIFEST: "schema: {input: null}"}, f"{MANIFEST}: schema"),
    Case(
        "tolerance-is-seen",
        {MANIFEST: "gates: {minimum_sample: {pre_ramp: 100, pre_full: 400}}"},
        f"{MANIFEST}: gates.minimum_sample.pre_ramp",
        {MANIFEST: ENOUGH},
        ("may be chance for brevity, helpfulness",),
    ),
    Case("rules-under-fifty", many(25), "rules", many(24), ("50 rule files",)),
]


def test_manifest_and_rules_agree() -> None:
    check_cases(CASES)


@pytest.mark.parametrize(
    ("sample", "lacking"),
    [
        ("{}", ["sample.adversarial", "sample.candidate"]),
        ("{candidate: {url: 'http://agents'}}", ["sample.adversarial"]),
        (
            "{candidate: {url: 'http://agents'}, adversarial: {name: a, version: 1, items: 0}}",
            ["sample.adversarial.items"],
        ),
        ("{candidate: {url: 'http://agents'}, adversarial: {name: a, version: 1, items: 1}}", []),
    ],
)
def test_pc5_5_5_a_sample_that_lacks_golden_or_adversarial_items_is_a_warning(sample: str, lacking: list[str]) -> None:
    found = lint(parsed_registry({MANIFEST: f"{{sample: {sample}, {ENOUGH}}}"})[0])
    assert [one.field for one in found] == lacking
    assert {one.severity for one in found} <= {Severity.WARNING}


def test_fifty_rules_are_a_warning_and_stay_valid() -> None:
    """PC5 NFR-4: a soft target; from there on the registry's organization is reviewed."""
    told = [one for one in lint(parsed_registry(many(25))[0]) if one.check == "rules-under-fifty"]
    assert [(one.file, one.severity) for one in told] == [("configs/rules", Severity.WARNING)]
    assert not [one for one in lint(parsed_registry(many(24))[0]) if one.check == "rules-under-fifty"]


@pytest.mark.parametrize(
    ("files", "check"),
    [
        ({BREVITY: None}, "manifest-judge-exists"),
        ({"rules/grace.yaml": HELPFULNESS}, "rule-in-use"),
    ],
)
def test_drift_is_told_in_both_directions(files: dict[str, str | None], check: str) -> None:
    """PC5 R-3, FR-14: a judge that the manifest names and no file declares, and a file that the manifest does not
    use."""
    assert check in {one.check for one in lint(parsed_registry(files)[0])}


def test_a_judge_whose_file_is_broken_is_not_called_missing() -> None:
    read, findings = parsed_registry({BREVITY: "score_type: NUMBER", MANIFEST: RED_TEAM})
    assert [one.field for one in findings] == ["score_type"]
    assert lint(read) == []
