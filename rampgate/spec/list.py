"""Lists the versions of an agent's baselines: `rampgate spec baselines` (AgentCI Step 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.spec.chosen import AgentOption, ConfigOption

if TYPE_CHECKING:
    from rampgate.report.model import Report


def _report(told: Document) -> Report:
    from rampgate.report.model import Cell, Reason, Report, Section, Value
    from schemas.counting import counted

    heads = ("Version", "Captured at", "Model", "Queries", "Correct", "Spec")
    rows: list[list[Value]] = [
        [
            one["version"], one["captured_at"][:19], one["metadata"]["model"], one["queries"],
            Cell(*(("yes", "pass") if one["metadata"]["precheck_passed"] else ("no", "fail"))),
            one["metadata"]["spec_hash"][:19],
        ]
        for one in told["baselines"]
    ]  # fmt: skip
    result = f"{counted(len(rows), 'version')} in {told['folder']}"
    reasons = [Reason("error", one["why"], file=one["file"]) for one in told["unreadable"]]
    tone = "fail" if reasons else "pass"
    return Report(f"Baselines of {told['agent']}", result, tone, [Section("", heads, rows)], reasons)


@command(_report)
def list_baselines(context: Context, config: ConfigOption = None, agent: AgentOption = None) -> Document:
    """List the versions of the agent's baselines, and files among them that are none. Exit code 2 where there is one.

    Example: rampgate spec baselines --agent rag-agent
    """
    from rampgate.spec.chosen import baselines_of, loaded_spec

    loaded = loaded_spec(config, agent)
    found = baselines_of(loaded)
    told, unreadable = [], []
    for version in found.versions:
        try:
            one = found.named(version)
        except Failure as error:
            file = str(found.folder / f"{version}.json")
            unreadable.append({"file": file, "why": str(error).removeprefix(f"{file}: ")})
        else:
            told.append(one.model_dump(mode="json", warnings="error") | {"queries": len(one.queries)})
    fields = {"agent": loaded.spec.agent, "folder": str(found.folder), "baselines": told, "unreadable": unreadable}
    return Document(fields, 2 if unreadable else 0)
