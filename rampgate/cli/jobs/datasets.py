"""Shows the golden sets that the manifest names beside those that Opik holds (PC5 §2, §5.6)."""

from __future__ import annotations

from rich.console import Console

from evalcore.registry import disk
from evalcore.validation import checked
from rampgate.cli.jobs.findings import as_dict
from rampgate.cli.jobs.registries import tree_of
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.registry.dataset_check import DatasetCheck, look
from rampgate.registry.verticals import load_verticals
from rampgate.registry.view import UnknownName
from rampgate.settings import Settings
from rampgate.tables import make_table

PLATFORM = "platform"


def list_datasets(settings: Settings, vertical: str | None, as_json: bool) -> int:
    """Show them, and return the exit code. Raises Failure where there is no manifest, or no such vertical."""
    configure_logs("error", "console")
    files, _ = checked(tree_of(settings.configs), disk.today())
    manifest, verticals = files.manifest, load_verticals(settings.configs)
    if manifest is None:
        raise Failure(f"{settings.configs}: there is no readable manifest; `rampgate manifest validate` says why")
    if vertical is not None and vertical not in verticals:
        raise Failure(str(UnknownName("vertical", vertical, verticals)))
    own = [name for name in verticals if name in manifest.model.datasets]
    names: list[str | None] = [None, *own] if vertical is None else [vertical]

    async def looked() -> list[DatasetCheck]:
        return [await look(settings, manifest, list(verticals.values()), name) for name in names]

    found = dict(zip((name or PLATFORM for name in names), run(looked), strict=True))
    if as_json:
        sets = [
            {"of": name, **one.document(), "wanted_items": one.wanted.items, "findings": [*map(as_dict, one.findings)]}
            for name, one in found.items()
        ]
        print_json({"datasets": sets})
    else:
        _show(found)
    if any(one.error for one in found.values()):
        return 2
    return 1 if any(one.findings for one in found.values()) else 0


def _show(found: dict[str, DatasetCheck]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    table = make_table(None, "Of", "Dataset", "Project", ">Version", ">In Opik", ">Items", ">In Opik")
    for name, one in found.items():
        there = one.there
        held = (there.version, there.items) if there is not None else (None, None)
        cells = (
            name,
            one.wanted.name,
            one.wanted.project or "-",
            one.wanted.version,
            held[0],
            one.wanted.items,
            held[1],
        )
        table.add_row(*(plain("-" if cell is None else cell) for cell in cells))
    console.print(table)
    for name, one in found.items():
        for said in [one.error] if one.error else [finding.message for finding in one.findings]:
            console.print(f"{plain(name)}: {plain(said, 500)}")
