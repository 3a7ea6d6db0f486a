"""Shows the golden sets that the manifest names beside those that Opik holds (PC5 §2, §5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from evalcore.manifest.dataset import named
from evalcore.registry import disk
from evalcore.validation import checked
from evalcore.yaml.loader import Parsed
from rampgate.cli.jobs.registry.findings import as_dict
from rampgate.cli.jobs.registry.registries import tree_of
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.registry.dataset_check import DatasetCheck, look
from rampgate.registry.verticals import load_verticals
from rampgate.registry.view import UnknownName, require_vertical
from rampgate.settings import Settings
from rampgate.tables import make_table
from schemas.manifests import ManifestFile
from schemas.verticals import Vertical

PLATFORM = "platform"
MOST_CATEGORIES = 100


def list_datasets(settings: Settings, vertical: str | None, as_json: bool) -> int:
    """Show them, and return the exit code. Raises Failure where there is no manifest, or no such vertical."""
    manifest, verticals = _read(settings)
    if vertical is not None:
        require_vertical(vertical, verticals)
    found = _looked(settings, manifest, verticals, _owners(manifest, verticals) if vertical is None else [vertical])
    if as_json:
        print_json({"datasets": _documents(found)})
    else:
        _show(found)
    return _code(found)


def show_dataset(settings: Settings, name: str, as_json: bool) -> int:
    """Show those of this name, with how many items Opik holds of each category, and return the exit code. Raises
    Failure where there is no manifest, or it names no such dataset."""
    manifest, verticals = _read(settings)
    of = {owner: named(manifest.model, owner)[1].name for owner in _owners(manifest, verticals)}
    if name not in of.values():
        raise Failure(str(UnknownName("dataset", name, of.values())))
    found = _looked(settings, manifest, verticals, [owner for owner, its in of.items() if its == name])
    if as_json:
        print_json({"datasets": _documents(found)})
    else:
        _show(found)
        _show_categories(found)
    return _code(found)


def _read(settings: Settings) -> tuple[Parsed[ManifestFile], dict[str, Vertical]]:
    configure_logs("error", "console")
    files, _ = checked(tree_of(settings.configs), disk.today())
    if files.manifest is None:
        raise Failure(f"{settings.configs}: there is no readable manifest; `rampgate manifest validate` says why")
    return files.manifest, load_verticals(settings.configs)


def _owners(manifest: Parsed[ManifestFile], verticals: Mapping[str, Vertical]) -> list[str | None]:
    """The platform, None, and each vertical that has a golden set of its own."""
    return [None, *(name for name in verticals if name in manifest.model.datasets)]


def _looked(
    settings: Settings,
    manifest: Parsed[ManifestFile],
    verticals: Mapping[str, Vertical],
    owners: Sequence[str | None],
) -> dict[str, DatasetCheck]:
    async def looked() -> list[DatasetCheck]:
        return [await look(settings, manifest, list(verticals.values()), owner) for owner in owners]

    return dict(zip((owner or PLATFORM for owner in owners), run(looked), strict=True))


def _documents(found: Mapping[str, DatasetCheck]) -> list[dict[str, Any]]:
    return [
        {"of": name, **one.document(), "wanted_items": one.wanted.items, "findings": [*map(as_dict, one.findings)]}
        for name, one in found.items()
    ]


def _code(found: Mapping[str, DatasetCheck]) -> int:
    if any(one.error for one in found.values()):
        return 2
    return 1 if any(one.findings for one in found.values()) else 0


def _show_categories(found: Mapping[str, DatasetCheck]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for name, one in found.items():
        if one.there is None:
            continue
        table = make_table(f"Items of {plain(name)} by category", "Category", ">Items")
        for category, items in sorted(one.there.categories.items())[:MOST_CATEGORIES]:
            table.add_row(plain(category or "(none)"), f"{items:,}")
        if (left := len(one.there.categories) - MOST_CATEGORIES) > 0:
            table.add_row("left out", f"{left:,} categories")
        console.print(table)


def _show(found: Mapping[str, DatasetCheck]) -> None:
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
