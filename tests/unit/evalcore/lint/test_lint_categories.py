"""Categories and judges are shared between verticals; a vertical's own files say what it adds (PF-9 §5.5, Decisions 17
and 18)."""

from __future__ import annotations

import pytest

from evalcore.lint.checks import lint
from evalcore.yaml.findings import Severity
from tests.unit.evalcore.lint.lint_cases import MANIFEST, PICKED, SHOP, TRAVEL, Case, check_cases
from tests.unit.evalcore.registry.registry_files import SELECTION, parsed_registry

TRAVEL_PICKED = SELECTION("travel")


def travel(categories: str, more: str = "") -> str:
    return f"vertical: travel\ncategories: {{{categories}}}\n{more}"


CASES = [
    Case(
        "category-not-redeclared",  # the platform's
        {TRAVEL: travel("general_qa: {judges: [brevity]}")},
        f"{TRAVEL}: categories.general_qa",
        {TRAVEL: travel("general_qa: {}")},  # reused by name
        ("[helpfulness]", "configs/evaluation_manifest.yaml", "pull request", "Decision 18"),
    ),
    Case(
        "category-not-redeclared",  # another vertical's
        {TRAVEL: travel("shop_returns: {judges: [brevity]}")},
        f"{TRAVEL}: categories.shop_returns",
        {TRAVEL: travel("shop_returns: {judges: [helpfulness, Brevity]}")},  # the same ones
        ("specs/verticals/shop/eval/manifest-extension.yaml", "shop review"),
    ),
    Case(
        "category-not-redeclared",  # by way of a selection
        {
            TRAVEL: travel("general_qa: {}"),
            TRAVEL_PICKED: "{vertical: travel, categories: {general_qa: {quality_judges: [brevity, helpfulness]}}}",
        },
        f"{TRAVEL}: categories.general_qa",
        {
            TRAVEL: travel("general_qa: {}"),
            TRAVEL_PICKED: "{vertical: travel, categories: {general_qa: {quality_judges: [helpfulness]}}}",
        },
    ),
    Case(
        "category-not-redeclared",  # by way of another category's judges
        {TRAVEL: travel("general_qa: {inherits_from: shop_returns}")},
        f"{TRAVEL}: categories.general_qa",
        {TRAVEL: travel("flight_search: {inherits_from: shop_returns}")},
    ),
    Case(
        "category-not-redeclared",  # by way of a chain of its own
        {TRAVEL: travel("general_qa: {inherits_from: a}, a: {inherits_from: b}, b: {judges: [brevity]}")},
        f"{TRAVEL}: categories.general_qa",
        {TRAVEL: travel("general_qa: {inherits_from: a}, a: {inherits_from: b}, b: {judges: [helpfulness]}")},
        ("[brevity]",),
    ),
    Case(
        "category-parent-exists",
        {TRAVEL: travel("flight_search: {inherits_from: general_q}")},
        f"{TRAVEL}: categories.flight_search.inherits_from",
        {TRAVEL: travel("flight_search: {inherits_from: general_qa}")},
        ("'general_qa'",),
    ),
    Case(
        "category-parent-exists",
        {MANIFEST: "categories: {general_qa: {inherits_from: small_talk}}"},
        f"{MANIFEST}: categories.general_qa.inherits_from",
        {MANIFEST: "categories: {general_qa: {inherits_from: shop_returns}}"},
    ),
    Case(
        "category-parents-end",
        {
            TRAVEL: travel(
                "flight_search: {inherits_from: flight_change}, flight_change: {inherits_from: flight_search}"
            )
        },
        f"{TRAVEL}: categories.flight_search.inherits_from",
        {TRAVEL: travel("flight_search: {inherits_from: flight_change}, flight_change: {inherits_from: general_qa}")},
        ("flight_search -> flight_change -> flight_search",),
    ),
    Case(
        "category-parents-end",
        {TRAVEL: travel("flight_search: {inherits_from: flight_search}")},
        f"{TRAVEL}: categories.flight_search.inherits_from",
    ),
    Case(
        "category-says-something",
        {TRAVEL: travel("flight_search: {}")},
        f"{TRAVEL}: categories.flight_search",
        {TRAVEL: travel("flight_search: {judges: []}")},  # nothing but global and safety judges
        ("judge-selection.yaml",),
    ),
    Case(
        "category-says-something",
        {TRAVEL: travel("flight_search: {description: Flights.}")},
        f"{TRAVEL}: categories.flight_search",
        {
            TRAVEL: travel("flight_search: {description: Flights.}"),
            TRAVEL_PICKED: "{vertical: travel, categories: {flight_search: {quality_judges: [brevity]}}}",
        },
        severity=Severity.WARNING,  # begun, as a scaffold leaves it
    ),
    Case(
        "one-selection",
        {SHOP: "categories: {shop_returns: {judges: [brevity]}}"},
        f"{SHOP}: categories.shop_returns.judges",
        {SHOP: "categories: {shop_returns: {judges: [brevity, helpfulness]}}"},
    ),
    Case(
        "category-name",
        {MANIFEST: "categories: {General QA: {judges: []}}"},
        f"{MANIFEST}: categories.General QA",
        {MANIFEST: "categories: {small-talk: {judges: []}}"},
    ),
    Case(
        "category-name",
        {TRAVEL: travel("general-qa: {judges: [helpfulness]}")},
        f"{TRAVEL}: categories.general-qa",
        {TRAVEL: travel("general_qa: {judges: [helpfulness]}")},
        ("general_qa",),
    ),
    Case(
        "manifest-is-resolved",
        {TRAVEL: travel("flight_search: {judges: [brevity]}")},
        f"{TRAVEL}: categories.flight_search",
        {
            TRAVEL: travel("flight_search: {judges: [brevity]}"),
            MANIFEST: "categories: {flight_search: {vertical: travel, judges: [brevity]}}",
        },
        ("rampgate manifest resolve",),
    ),
    *(
        Case(
            "manifest-is-resolved",
            {TRAVEL: travel("flight_search: {inherits_from: general_qa}")},
            f"{TRAVEL}: categories.flight_search",
            {TRAVEL: travel(elsewhere)},  # other checks' findings
        )
        for elsewhere in ("flight_search: {}", "shop_returns: {judges: [helpfulness]}")
    ),
    Case(
        "manifest-is-resolved",
        {SHOP: "categories: {shop_returns: {judges: [brevity]}}", PICKED: None},
        f"{SHOP}: categories.shop_returns",
        {SHOP: "categories: {shop_returns: {inherits_from: general_qa}}", PICKED: None},
    ),
    Case(
        "manifest-is-resolved",
        {PICKED: "categories: {shop_returns: {quality_judges: [helpfulness]}}"},
        f"{SHOP}: categories.shop_returns",
    ),
    Case(
        "selected-judge-exists",
        {PICKED: "categories: {shop_returns: {quality_judges: [brevity, helpfullness]}}"},
        f"{PICKED}: categories.shop_returns.quality_judges[1]",
        {PICKED: "categories: {shop_returns: {quality_judges: [brevity, Helpfulness]}}"},
        ("'helpfulness'", "pull request"),
    ),
    Case(
        "selected-judge-exists",
        {TRAVEL: travel("flight_search: {judges: [fares]}")},
        f"{TRAVEL}: categories.flight_search.judges[0]",
        {
            TRAVEL: travel("flight_search: {judges: [style]}"),
            MANIFEST: "composites: {style: {judges: [brevity, helpfulness]}}",
        },
    ),
    Case(
        "selection-without-safety",
        {PICKED: "categories: {shop_returns: {quality_judges: [Refusal]}}"},
        f"{PICKED}: categories.shop_returns.quality_judges[0]",
        {
            PICKED: "categories: {shop_returns: {quality_judges: [brevity]}}",
            SHOP: "categories: {shop_returns: {judges: [brevity, refusal]}}",  # no selection
        },
        ("every category has it",),
    ),
    Case(
        "selected-once",
        {PICKED: "categories: {shop_returns: {quality_judges: [brevity, helpfulness, Brevity]}}"},
        f"{PICKED}: categories.shop_returns.quality_judges[2]",
        {PICKED: "categories: {shop_returns: {quality_judges: [brevity, helpfulness]}}"},
    ),
    Case(
        "selected-category-exists",
        {PICKED: "categories: {shop_return: {quality_judges: [brevity]}}"},
        f"{PICKED}: categories.shop_return",
        {PICKED: "categories: {shop_returns: {quality_judges: [helpfulness, brevity]}}"},
        ("'shop_returns'",),
    ),
    Case("selected-category-exists", {SHOP: None}, f"{PICKED}: categories.shop_returns"),
]


def test_a_vertical_adds_and_reuses_and_never_redefines() -> None:
    check_cases(CASES)


@pytest.mark.parametrize("broken", ["", "\narchetypes: 7"])
def test_a_file_of_a_vertical_names_the_vertical_of_its_folder(broken: str) -> None:
    """PF-9 §5.5. Also where something else in the file is wrong."""
    read, findings = parsed_registry({TRAVEL: travel("general_qa: {}").replace("travel", "shop") + broken})
    (told,) = (one for one in findings if one.check == "name-fits-place")
    assert (told.file, told.field) == ("specs/verticals/travel/eval/manifest-extension.yaml", "vertical")
    assert ("extension", "travel") in read.unread


def test_the_update_path_names_everybody_who_uses_the_category_and_nobody_else() -> None:
    """PF-9 Decision 18: whom the change of an existing category concerns reviews it."""
    files = {
        f"../specs/verticals/{name}/eval/manifest-extension.yaml": f"{{vertical: {name}, categories: {{{categories}}}}}"
        for name, categories in {
            "arrivals": "general_qa: {}",
            "banking": "balance: {inherits_from: general_qa}",
            "cinema": "tickets: {judges: [brevity]}",
            "travel": "general_qa: {judges: [brevity]}",
        }.items()
    }
    (told,) = (one for one in lint(parsed_registry(files)[0]) if one.check == "category-not-redeclared")
    assert "the platform's owners and those of arrivals, banking review it (Decision 18)" in told.fix


def test_two_verticals_that_declare_one_category_differently_are_told_whoever_reads_first() -> None:
    """PF-9 Decision 17: the error stands in one of the two files and names the other."""
    for first, second in (("arrivals", "travel"), ("travel", "arrivals")):
        files = {
            f"../specs/verticals/{first}/eval/manifest-extension.yaml": (
                f"{{vertical: {first}, categories: {{delays: {{judges: [brevity]}}}}}}"
            ),
            f"../specs/verticals/{second}/eval/manifest-extension.yaml": (
                f"{{vertical: {second}, categories: {{delays: {{judges: [helpfulness]}}}}}}"
            ),
        }
        told = [one for one in lint(parsed_registry(files)[0]) if one.check == "category-not-redeclared"]
        assert [one.file for one in told] == ["specs/verticals/travel/eval/manifest-extension.yaml"]
        assert "specs/verticals/arrivals/eval/manifest-extension.yaml" in told[0].message + told[0].fix
