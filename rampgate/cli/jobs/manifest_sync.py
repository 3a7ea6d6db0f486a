"""`rampgate manifest sync`: what a changed manifest means in Opik (PC5 §5.7 step 3, FR-10).

Opik's copies of the judges carry the manifest's thresholds, so a changed manifest is a sync of all judges. Its dataset
belongs to its owner: it is looked up and compared, and never written.
"""

from __future__ import annotations

from dataclasses import replace

from evalcore.registry import disk
from evalcore.validation import checked
from evalcore.yaml.findings import Severity, ValidationResult
from rampgate.cli.jobs.findings import as_dict, show_findings
from rampgate.cli.jobs.rules import SyncAsked, chosen, sync_rules, told_on
from rampgate.cli.registries import tree_of
from rampgate.console import run
from rampgate.registry.dataset_check import DatasetCheck, look
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings


def sync(settings: Settings, asked: SyncAsked) -> int:
    """The exit code is that of the sync of the rules; what is told of the dataset, and of a manifest that is not what
    its sources give, are warnings."""
    chosen(settings, asked.vertical)
    tree = tree_of(settings.configs)
    files, findings = checked(tree, disk.today())
    if files.manifest is None or any(one.severity is Severity.ERROR for one in findings):
        return sync_rules(settings, asked)
    manifest, verticals = files.manifest, load_verticals(settings.configs).values()
    found: DatasetCheck = run(lambda: look(settings, manifest, verticals))
    about = [one for one in findings if one.file == manifest.document.file]
    warnings = ValidationResult.of(settings.configs, [*about, *found.findings])
    if not asked.as_json:
        console = told_on(False)
        show_findings(warnings.findings, console)
        if found.error is not None:
            console.print(f"dataset {found.wanted.name}: can't be looked up: {found.error}", markup=False)
        elif not found.findings:
            console.print(f"dataset {found.wanted.name}: as the manifest says", markup=False)
    told = {"dataset": found.document(), "warnings": [as_dict(one) for one in warnings.findings]}
    return sync_rules(settings, replace(asked, beside=told))
