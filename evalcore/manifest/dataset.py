"""Compares the dataset in Opik with the one that the manifest describes (PC5 §5.3, §9.3, R-1). Judges nothing.

Every finding is a warning: the vertical owns the dataset, and a gate that meets another dataset reports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evalcore.registry.files import finding
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.counting import counted
from schemas.manifests import Dataset, ManifestFile


@dataclass(frozen=True)
class DatasetThere:
    """A dataset in Opik. `version` is the requested one, None where Opik does not have it; `items` and `categories`
    (how many items of each) are that version's, else the latest's. An item without a category counts under ""."""

    latest: int | None
    version: int | None
    items: int
    categories: Mapping[str, int] = field(default_factory=dict)


def named(manifest: ManifestFile, vertical: str | None) -> tuple[FieldPath, Dataset]:
    """Returns the golden set that a vertical is judged on, and where the manifest names it."""
    own = manifest.datasets.get(vertical) if vertical is not None else None
    return (
        (("datasets", vertical), own) if vertical is not None and own is not None else (("dataset",), manifest.dataset)
    )


def unfit(manifest: Parsed[ManifestFile], there: DatasetThere | None, vertical: str | None = None) -> Iterator[Finding]:
    """Yields a warning for each difference from the golden set that the vertical is judged on; `there` is None where
    Opik has no such dataset."""
    at, wanted = named(manifest.model, vertical)
    if there is None:
        where = f" in project {wanted.project!r}" if wanted.project is not None else ""
        message = f"Opik has no dataset {wanted.name!r}{where}"
        yield _warn(manifest, (*at, "name"), "dataset-is-there", message, "its owner uploads it, or name another")
        return
    if there.version is None:
        newest = f"; the latest is {there.latest}" if there.latest is not None else ""
        message = f"Opik has no version {wanted.version} of {wanted.name!r}{newest}"
        fix = "name a version that is there; a new one is taken up by a pull request (PC5 OQ-4)"
        yield _warn(manifest, (*at, "version"), "dataset-version-is-there", message, fix)
    if there.items != wanted.items:
        message = f"{wanted.items} here; {there.items} in Opik"
        fix = "find out which is meant; a gate would judge what is in Opik"
        yield _warn(manifest, (*at, "items"), "dataset-items", message, fix)
    yield from _categories(manifest, there, vertical if vertical in manifest.model.datasets else None)


def _categories(manifest: Parsed[ManifestFile], there: DatasetThere, owner: str | None) -> Iterator[Finding]:
    known = manifest.model.categories
    for name, declared in known.items():
        # The platform's categories are exercised by its dataset, a vertical's own by the vertical's.
        if declared.vertical == owner and not there.categories.get(name):
            message = f"no item of the dataset is of category {name!r}: no gate before a merge judges it"
            fix = "add items of it to the dataset"
            yield _warn(manifest, ("categories", name), "category-has-items", message, fix)
    for name, count in sorted(there.categories.items()):
        if name not in known:
            which = (
                f"of category {name[:80]!r}, which is not here{near_miss(name, known)}" if name else "of no category"
            )
            message = f"{counted(count, 'item')} of the dataset, {which}"
            fix = "declare the category, or correct the items' metadata.category"
            yield _warn(manifest, ("categories",), "items-have-a-category", message, fix)


def _warn(manifest: Parsed[ManifestFile], path: FieldPath, check: str, message: str, fix: str) -> Finding:
    return finding(check, "PC5 §5.3, R-1", manifest, path, message, fix, Severity.WARNING)
