"""Runs `rampgate datasets`: the golden sets that the manifest names beside those that Opik holds (PC5 §2, §5.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from typer import Argument

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.options import VerticalOption
from rampgate.report.model import Reason, Report, Section

PLATFORM = "platform"
MOST_CATEGORIES = 100


def datasets_report(told: Mapping[str, Any]) -> Report:
    """The report, with how many items of each category Opik holds on pages."""
    found = told["datasets"]
    heads = ("Of", "Dataset", "Project", "Version", "Latest in Opik", "Items", "In Opik")
    rows = [
        [
            one["of"], one["name"], one["project"], str(one["version"]), str(one["latest"] or ""), one["wanted_items"],
            one["items"],
        ]
        for one in found
    ]  # fmt: skip
    why = [
        Reason("error", message, about=one["of"], undecided=bool(one["error"]))
        for one in found
        for message in ([one["error"]] if one["error"] else [each["message"] for each in one["findings"]])
    ]
    sections = [Section("", heads, rows)]
    for one in found:
        many = sorted(one["categories"].items())
        left = [f"{len(many) - MOST_CATEGORIES:,} categories are left out"] if len(many) > MOST_CATEGORIES else []
        counts = [[category or "(none)", items] for category, items in many[:MOST_CATEGORIES]]
        title = f"Items of {one['of']} by category"
        sections.append(Section(title, ("Category", "Items"), counts, left, pages_only=len(found) > 1))
    unknown = any(one.undecided for one in why)
    result = "Opik can't be read" if unknown else "Opik holds others" if why else "Opik holds what the manifest wants"
    return Report("Datasets", result, "fail" if why else "pass", sections, why)


@command(datasets_report, flags="configs opik")
async def datasets(
    context: Context,
    name: Annotated[str | None, Argument(help="Only this dataset of the manifest, and its categories")] = None,
    vertical: VerticalOption = None,
) -> Document:
    """Show the platform's golden set and each vertical's: what the manifest wants of it and what Opik holds.

    It only reads: a dataset is its vertical's own. Exit code 1 if Opik holds another version or size, or too few
    categories, 2 if it can't be read.

    Example: rampgate datasets consumer-agent-eval --json
    """
    from evalcore.manifest.dataset import named
    from rampgate.registry.dataset_check import look
    from rampgate.registry.view import UnknownName, documents, require_vertical

    settings, manifest, verticals = context.settings, context.checked[0].manifest, context.verticals
    if manifest is None:
        raise Failure(f"{settings.configs}: there is no readable manifest; `rampgate manifest validate` says why")
    if vertical is not None:
        require_vertical(vertical, verticals)
    owners = [vertical] if vertical else [None, *(each for each in verticals if each in manifest.model.datasets)]
    of = {owner: named(manifest.model, owner)[1].name for owner in owners}
    if name is not None and name not in of.values():
        raise Failure(str(UnknownName("dataset", name, of.values())))
    wanted = [owner for owner in owners if name in (None, of[owner])]
    found = {owner: await look(settings, manifest, [*verticals.values()], owner) for owner in wanted}
    fields = [
        {"of": owner or PLATFORM, **one.document(), "wanted_items": one.wanted.items,
         "findings": documents(one.findings)}
        for owner, one in found.items()
    ]  # fmt: skip
    unread = any(one.error for one in found.values())
    return Document({"datasets": fields}, 2 if unread else int(any(one.findings for one in found.values())))
