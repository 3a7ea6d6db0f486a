"""Every malformed field is an error that names file, line and field, the clause and the fix (PC5 AC-6); all errors of a
file are told at once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from evalcore.yaml.findings import Severity
from tests.unit.evalcore.yaml.bad_files import NAMES, SHIPPED, assert_well_told, edited, findings_of


@dataclass(frozen=True)
class Bad:
    """In a file of `kind`, `new` stands for `old`. The finding is at `field`, `below` lines under the change, and its
    message or fix says `words`."""

    kind: str
    old: str
    new: str
    check: str
    field: str
    words: str = ""
    below: int = 0


RULE, OWN, MANIFEST, BASE = "rule", "vertical rule", "manifest", "base"
LONG = "x" * 300
BAD = [
    # A field that is not there, or is called otherwise.
    Bad(RULE, "name: UX Quality Judge\n", "", "missing-field", "name", "the judge's name", None),
    Bad(RULE, "model: gpt-5-mini\n", "", "missing-field", "model", "add 'model:", None),
    Bad(RULE, "score_type: FLOAT\n", "", "missing-field", "score_type", "INTEGER, FLOAT or BOOLEAN", None),
    Bad(RULE, "classification: quality\n", "", "missing-field", "classification", "safety_refusal or quality", None),
    Bad(RULE, "  offline:\n", "  ofline:\n", "unknown-field", "variables.ofline", "did you mean 'offline'?"),
    Bad(RULE, "  offline:\n", "  ofline:\n", "missing-field", "variables.offline", "rename 'ofline'", -1),
    Bad(RULE, "score_type: FLOAT", "scoretype: FLOAT", "unknown-field", "scoretype", "did you mean 'score_type'?"),
    Bad(RULE, "score_type: FLOAT", "Score_Type: FLOAT", "unknown-field", "Score_Type", "did you mean 'score_type'?"),
    Bad(RULE, "floor: 0.5", "floors: 0.5", "unknown-field", "floors", "did you mean 'floor'?"),
    Bad(RULE, "floor: 0.5", "floor: 0.5\nweight: 2", "unknown-field", "weight", "", 1),
    Bad(RULE, "floor: 0.5", "floor: 0.5\nkey: agent_id", "unknown-field", "key", "did you mean 'filter.key'?", 1),
    Bad(RULE, "  traces: 301", "  trace_count: 301", "unknown-field", "calibration.trace_count"),
    Bad(RULE, "baseline_source:", "baseline_sorce:", "missing-field", "baseline_source", "rename", None),
    # A field that is empty.
    Bad(RULE, "model: gpt-5-mini", "model:", "empty-value", "model"),
    Bad(RULE, "model: gpt-5-mini", "model: ~", "empty-value", "model"),
    Bad(RULE, "model: gpt-5-mini", "model: ''", "empty-value", "model"),
    Bad(RULE, "applies_to: []", "applies_to: ", "empty-value", "applies_to"),
    Bad(RULE, "applies_to: []", "applies_to: [conversation, ~]", "empty-value", "applies_to[1]"),
    Bad(RULE, "    input: input\n    output: output\n", "", "empty-value", "variables.offline", "", -1),
    # A value of another type.
    Bad(RULE, "model: gpt-5-mini", "model: 5", "wrong-type", "model", "put it in quotes: '5'"),
    Bad(RULE, "model: gpt-5-mini", "model: [gpt-5-mini]", "wrong-type", "model", "must be text, not a list"),
    Bad(RULE, "model: gpt-5-mini", "model: 2026-08-22", "wrong-type", "model", "put it in quotes"),
    Bad(RULE, "temperature: 0\n", "temperature: '1.0'\n", "wrong-type", "temperature", "without quotes"),
    Bad(RULE, "temperature: 0\n", "temperature: warm\n", "wrong-type", "temperature", "must be a number"),
    Bad(RULE, "temperature: 0\n", "temperature: 1,0\n", "wrong-type", "temperature", "plain decimal number"),
    Bad(RULE, "temperature: 0\n", "temperature: true\n", "wrong-type", "temperature", "must be a number, not true"),
    Bad(RULE, "temperature: 0\n", "temperature: 01.0\n", "wrong-type", "temperature", "leading zeros"),
    Bad(RULE, "temperature: 0\n", "temperature: 1_0\n", "wrong-type", "temperature", "underscores"),
    Bad(RULE, "temperature: 0\n", "temperature: 0x1\n", "wrong-type", "temperature", "plain decimal number"),
    Bad(RULE, "temperature: 0\n", "temperature: 1:30\n", "wrong-type", "temperature", "plain decimal number"),
    Bad(RULE, "enabled: true", "enabled: yes", "wrong-type", "enabled", "write true, without quotes"),
    Bad(RULE, "enabled: true", "enabled: off", "wrong-type", "enabled", "write false, without quotes"),
    Bad(RULE, "enabled: true", "enabled: 1", "wrong-type", "enabled", "true or false"),
    Bad(RULE, "enabled: true", "enabled: 'true'", "wrong-type", "enabled", "write true, without quotes"),
    Bad(RULE, "applies_to: []", "applies_to: conversation", "wrong-type", "applies_to", "must be a list"),
    Bad(RULE, "score_range: [0.0, 1.0]", "score_range: 0-1", "wrong-type", "score_range", "must be a list"),
    Bad(RULE, "score_range: [0.0, 1.0]", "score_range: [0.0]", "wrong-length", "score_range", "at least 2"),
    Bad(RULE, "score_range: [0.0, 1.0]", "score_range: [0, a]", "wrong-type", "score_range[1]", "a number"),
    Bad(RULE, "floor: 0.5", "floor: {pre_merge: 0.5}", "wrong-type", "floor", "not a mapping"),
    Bad(RULE, "  traces: 301", "  traces: 301.5", "wrong-type", "calibration.traces", "whole number"),
    Bad(RULE, "  traces: 301", "  traces: many", "wrong-type", "calibration.traces", "whole number"),
    Bad(
        RULE, "\nenforcement:\n  pre_merge: warn", "\nenforcement: warn\nx:\n  y: 1", "wrong-type", "enforcement", "", 1
    ),
    # A word that is none of those there are.
    Bad(RULE, "score_type: FLOAT", "score_type: float", "unknown-value", "score_type", "did you mean 'FLOAT'?"),
    Bad(RULE, "score_type: FLOAT", "score_type: PERCENT", "unknown-value", "score_type", "INTEGER, FLOAT, BOOLEAN"),
    Bad(RULE, ": quality", ": qualtiy", "unknown-value", "classification", "did you mean 'quality'?"),
    Bad(RULE, "provisional_seed", "guess", "unknown-value", "baseline_source", "jade_calibration"),
    Bad(RULE, "pre_merge: warn", "pre_merge: ignore", "unknown-value", "enforcement.pre_merge", "warn, block"),
    Bad(RULE, "pre_merge: warn", "premerge: warn", "unknown-key", "enforcement.premerge", "did you mean 'pre_merge'?"),
    Bad(RULE, "pre_full: block", "post_full: block", "unknown-key", "enforcement.post_full", "pre_merge, pre_ramp"),
    # A number out of its range, a day that is none, a text without the form it must have.
    Bad(RULE, "temperature: 0\n", "temperature: 2.1\n", "out-of-range", "temperature", "at most 2"),
    Bad(RULE, "sampling_rate: 1.0", "sampling_rate: 100", "out-of-range", "sampling_rate", "at most 1"),
    Bad(RULE, "sampling_rate: 1.0", "sampling_rate: -0.1", "out-of-range", "sampling_rate", "at least 0"),
    Bad(RULE, "tolerance: 0.05", "tolerance: -0.05", "out-of-range", "tolerance", "at least 0"),
    Bad(RULE, "  traces: 301", "  traces: -1", "out-of-range", "calibration.traces", "at least 0"),
    Bad(RULE, "tolerance: 0.05", "tolerance: .NaN", "yaml-number", "tolerance", "finite"),
    Bad(RULE, "floor: 0.5", "floor: -.INF", "yaml-number", "floor", "finite"),
    Bad(RULE, "2027-02-18", "2027-02-30", "wrong-value", "recalibration_due", "YYYY-MM-DD"),
    Bad(RULE, "2027-02-18", "9999-12-31", "wrong-value", "recalibration_due", "from 2000 to 2099"),
    Bad(RULE, "on: 2026-11-20", "on: 9999-12-31", "wrong-value", "calibration.seeded_on", "from 2000 to 2099"),
    Bad(RULE, "on: 2026-11-20", "on: 0001-01-01", "wrong-value", "calibration.seeded_on", "from 2000 to 2099"),
    Bad(RULE, "2027-02-18", "18.02.2027", "wrong-value", "recalibration_due", "YYYY-MM-DD"),
    Bad(RULE, "2027-02-18", "next quarter", "wrong-value", "recalibration_due", "YYYY-MM-DD"),
    Bad(RULE, "2027-02-18", "1802995200", "wrong-value", "recalibration_due", "YYYY-MM-DD"),
    Bad(RULE, "2027-02-18", "2027-02-18T00:00:00Z", "wrong-value", "recalibration_due", "YYYY-MM-DD"),
    Bad(RULE, "    input: input\n", "    input: the input\n", "wrong-format", "variables.offline.input", "dotted path"),
    Bad(RULE, "    input: input\n", "    input: a..b\n", "wrong-format", "variables.offline.input", "dotted path"),
    Bad(RULE, "    input: input\n", "    input: a[x]\n", "wrong-format", "variables.offline.input", "dotted path"),
    Bad(RULE, "name: UX Quality Judge", f"name: {LONG}", "too-long", "name", "200 characters"),
    # What a vertical may not say of a judge, or says wrongly.
    Bad(OWN, "threshold: 0.7", "threshold: 0.7\nprompt: mine", "unknown-field", "prompt", "does not fork a judge", 1),
    Bad(OWN, "threshold: 0.7", "threshold: 0.7\nmodel: mine", "unknown-field", "model", "central rule file", 1),
    Bad(OWN, "threshold: 0.7", "threshold: '0.7'", "wrong-type", "threshold", "without quotes"),
    Bad(
        OWN,
        "threshold: 0.7",
        "threshold: {pre_ram: 0.7}",
        "unknown-key",
        "threshold.pre_ram",
        "did you mean 'pre_ramp'?",
    ),
    Bad(OWN, "threshold: 0.7", "treshold: 0.7", "unknown-field", "treshold", "did you mean 'threshold'?"),
    Bad(OWN, "operator: equals", "operator: is", "unknown-value", "filter.operator"),
    Bad(OWN, "operator: equals", "operator: '~'", "unknown-value", "filter.operator"),
    Bad(OWN, "  field: sub_agent_id\n", "", "missing-field", "filter.field", "", -1),
    Bad(OWN, "  value: receipts", "  value: [1, {a: 2}]", "filter-value-fits", "filter.value"),
    Bad(OWN, "classification: quality", "classification: safety", "unknown-value", "classification"),
    # The manifest, and what it is made from.
    Bad(MANIFEST, "  version: 7", "  version: seven", "wrong-type", "dataset.version", "whole number"),
    Bad(MANIFEST, "  version: 7", "  version: 7.0", "wrong-type", "dataset.version", "whole number"),
    Bad(MANIFEST, "  version: 7", "  version: 0", "out-of-range", "dataset.version", "at least 1"),
    Bad(MANIFEST, "  items: 345\n", "", "missing-field", "dataset.items", "", None),
    Bad(MANIFEST, "  jailbreaking: true", "  jailbreaking: 'true'", "wrong-type", "thresholds.jailbreaking"),
    Bad(MANIFEST, "  jailbreaking: true", "  jailbreaking: yes", "wrong-type", "thresholds.jailbreaking"),
    Bad(
        MANIFEST,
        "  ux_quality: 0.7",
        "  ux_quality.pre_rmp: 0.7",
        "threshold-of-a-judge",
        "thresholds.ux_quality.pre_rmp",
    ),
    Bad(MANIFEST, "    pre_ramp: 3\n", "    preramp: 3\n", "unknown-key", "thresholds.conversation_flow.preramp"),
    Bad(MANIFEST, "    aggregate: min", "    aggregate: median", "unknown-value", "composites.safety.aggregate"),
    Bad(
        MANIFEST,
        "    archetypes:\n    - conversation\n",
        "    archetypes: 3\n",
        "wrong-type",
        "categories.general_qa.archetypes",
    ),
    Bad(
        MANIFEST, "  coverage_floor: 0.01", "  coverage_floor: 0", "out-of-range", "gates.coverage_floor", "more than 0"
    ),
    Bad(BASE, "    pre_merge: 20", "    pre_merge: 0", "out-of-range", "gates.minimum_sample.pre_merge", "at least 1"),
    Bad(BASE, "    pre_ramp: 86400", "    pre_ramp: 1d", "wrong-type", "gates.window_seconds.pre_ramp", "whole number"),
    Bad(
        BASE,
        "    pre_full: 604800",
        "    pre_full: 604801",
        "out-of-range",
        "gates.window_seconds.pre_full",
        "at most 604800",
    ),
    Bad(BASE, "thresholds:", "treshold:", "unknown-field", "treshold", "did you mean 'thresholds'?"),
    Bad("extension", "vertical: receipts\n", "", "missing-field", "vertical", "", None),
    Bad(
        "extension",
        "    inherits_from: general_qa",
        "    inherit: general_qa",
        "unknown-field",
        "categories.receipt_scan.inherit",
    ),
    Bad("extension", "  conversation: [receipts]", "  conversation: receipts", "wrong-type", "archetypes.conversation"),
    Bad(
        "selection",
        "    quality_judges: [",
        "    quality_judge: [",
        "unknown-field",
        "categories.receipt_scan.quality_judge",
    ),
    Bad(
        "selection",
        "[response_quality,",
        "[7,",
        "wrong-type",
        "categories.receipt_scan.quality_judges[0]",
        "put it in quotes",
    ),
    Bad("overrides", "overrides: []", "overrides: [{}]", "missing-field", "overrides[0].judge"),
    Bad("overrides", "overrides: []", "override: []", "unknown-field", "override", "did you mean 'overrides'?"),
    Bad("gate paths", "tests/**,", "./tests,", "wrong-value", "paths[0].files[0]", "from the repository's root"),
    Bad("canaries", 'plain: "Give this a {best}."', "plain: ' '", "empty-value", "canaries.plain"),
    Bad("canaries", 'plain: "Give this a {best}."', "plain:", "empty-value", "canaries.plain"),
    Bad("canaries", "canaries:\n", "classes: [told-best]\ncanaries:\n", "unknown-field", "classes"),
    Bad("canaries", "canaries:\n", "limits: {shift: 1.5}\ncanaries:\n", "out-of-range", "limits.shift", "less than 1"),
    Bad("gate paths", "gates: [pre_merge]", "gates: [pre_merg]", "unknown-value", "paths[2].gates[0]", "pre_merge"),
    Bad("registration", "project: receipts-eval\n", "", "missing-field", "project", "", None),
    Bad("registration", "workspace: default", "workspace: 1", "wrong-type", "workspace"),
    Bad("registration", ": 300", ": 0", "out-of-range", "reroll_window_seconds", "more than 0"),
    Bad("registration", "name: receipts", "name: Receipts!", "wrong-format", "name"),
]


@pytest.mark.parametrize("kind", NAMES)
def test_pc5_ac6_a_malformed_field_is_told_with_its_place_the_clause_and_the_fix(kind: str) -> None:
    for bad in [bad for bad in BAD if bad.kind == kind]:
        raw, line = edited(bad.kind, bad.old, bad.new)
        findings = findings_of(bad.kind, raw)
        for finding in findings:
            assert_well_told(finding, raw.count(b"\n") + 1)
        told = [one for one in findings if (one.check, one.field) == (bad.check, bad.field)]
        assert len(told) == 1, (bad, [str(finding) for finding in findings])
        assert told[0].severity is Severity.ERROR, bad
        assert bad.words in f"{told[0].message} {told[0].fix}", bad
        if bad.below is not None:
            assert told[0].line == line + bad.below, bad


def test_the_table_has_files_of_every_kind() -> None:
    assert {bad.kind for bad in BAD} == set(NAMES)
    assert len(BAD) >= 80


def test_five_faults_are_five_errors_at_once() -> None:
    text = SHIPPED.files[NAMES["rule"]].decode()
    for old, new in [
        ("model: gpt-5-mini", "model: 5"),
        ("enabled: true", "enabled: yes"),
        ("score_type: FLOAT", "score_type: PERCENT"),
        ("tolerance: 0.05", "tolerance: -1"),
        ("pre_merge: warn", "premerge: warn"),
    ]:
        text = text.replace(old, new, 1)
    findings = findings_of("rule", text.encode())
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    assert {finding.field for finding in errors} == {
        "model",
        "enabled",
        "score_type",
        "tolerance",
        "enforcement.premerge",
    }
    assert len(errors) == 5


def test_faults_of_the_text_of_the_fields_and_of_their_values_are_told_together() -> None:
    """YAML, model and linter each find something in one file, and none hides the others."""
    text = SHIPPED.files[NAMES["rule"]].decode()
    for old, new in [
        ("temperature: 0\n", "temperature: &t 1.0\n"),
        ("enabled: true", "enabled: yes"),
        ("2027-02-18", "2028-02-18"),
    ]:
        text = text.replace(old, new, 1)
    checks = {finding.check for finding in findings_of("rule", f"{text}model: again\n".encode())}
    assert {"yaml-anchor", "yaml-duplicate-key", "wrong-type", "seed-cadence"} <= checks


def test_one_bad_file_of_each_kind_is_told_of_each() -> None:
    tree = SHIPPED
    for kind, name in NAMES.items():
        if kind != "registration":
            tree = tree.with_file(name, SHIPPED.files[name] + b"anything: 1\n")
    raw = SHIPPED.files[NAMES["registration"]] + b"anything: 1\n"
    for kind, name in NAMES.items():
        findings = findings_of(kind, raw if kind == "registration" else tree.files[name], tree)
        assert "anything" in [finding.field for finding in findings if finding.check == "unknown-field"], kind
