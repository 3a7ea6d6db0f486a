"""Says what changed between two rounds of a vertical: for `rampgate calibrate diff`, and for a round's report.

Of each judge and category what either round found stands beside what the other did: alphas, correlation with people and
whether the judge is inverted, cuts, floors, limits of drift, the judge's version; and the judges of one round alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from rampgate.calibration.folder import Folder, folder_of
from rampgate.command import Context, Document
from rampgate.console import Failure, plain
from rampgate.registry.view import require_vertical
from schemas.calibration_cycle import Cycle, State, Step

INVERTED = {True: "yes", False: "no", None: "unknown"}
Figure = float | str | None


class Of(NamedTuple):
    """What a figure is, and of which judge, or category and judge."""

    what: str
    name: str


@dataclass(frozen=True)
class Change:
    """A figure of both rounds; None of a round that has none. `difference` is that of two numbers."""

    what: str
    of: str
    then: Figure
    now: Figure
    difference: float | None


@dataclass(frozen=True)
class Difference:
    """Two rounds side by side. `judges_added` are those of the later one alone, `judges_removed` those of the other."""

    judges_added: tuple[str, ...]
    judges_removed: tuple[str, ...]
    figures: tuple[Change, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The figures that are not the same in both."""
        return tuple(one for one in self.figures if one.then != one.now)


def difference(before: Cycle, after: Cycle) -> Difference:
    """What changed from the one round to the other, in the order of the later one."""
    then, now = dict(_figures(before)), dict(_figures(after))
    figures = [
        Change(*of, then.get(of), now.get(of), _minus(now.get(of), then.get(of))) for of in dict.fromkeys([*now, *then])
    ]
    old, new = _judges(before), _judges(after)
    added, removed = (tuple(name for name in some if name not in others) for some, others in ((new, old), (old, new)))
    return Difference(added, removed, tuple(figures))


def difference_document(context: Context, vertical: str, then: str, now: str) -> Document:
    """What changed between two rounds. Raises Failure for a round that is not there or has no report."""
    require_vertical(vertical, context.verticals)
    before, after = (_reported(folder_of(context.settings.configs, vertical, name)) for name in (then, now))
    found = difference(before, after)
    return Document(_document(found, before, after))


def _figures(cycle: Cycle) -> Iterator[tuple[Of, Figure]]:
    for rated in cycle.agreement:
        yield Of("Alpha", f"{rated.category}, {rated.judge_id}"), rated.alpha
    for held in cycle.inversion:
        yield Of("Pearson with people", held.judge_id), held.pearson
        yield Of("Inverted", held.judge_id), INVERTED[held.inverted]
    for floor in cycle.floors:
        yield Of("Acceptable from", floor.judge_id), floor.acceptable
        yield Of("Floor", floor.judge_id), floor.floor if floor.proposed else None
    for drift in cycle.drift:
        yield Of("Version", drift.judge_id), drift.judge_version
        yield Of("Limit of drift", drift.judge_id), drift.kl_limit


def _judges(cycle: Cycle) -> Mapping[str, None]:
    every = (cycle.agreement, cycle.inversion, cycle.floors, cycle.drift)
    return dict.fromkeys(sorted({one.judge_id for found in every for one in found}))


def _minus(new: Figure, old: Figure) -> float | None:
    return None if isinstance(new, str | None) or isinstance(old, str | None) else new - old


def _reported(folder: Folder) -> Cycle:
    """A round whose figures are all there."""
    known = folder.document()
    if known is None:
        others = sorted(path.name for path in folder.path.parent.glob("*") if Folder(path).document() is not None)
        raise Failure(f"{folder.path}: no such round; there are: {plain(', '.join(others) or 'none', 500)}")
    if known.step(Step.REPORT).state is not State.DONE:
        go_on = f"rampgate calibrate jade --vertical {known.vertical} --round {known.round}"
        raise Failure(f"{folder.path}: the round has no report yet; `{go_on}` says what it waits for")
    return known


def _document(found: Difference, before: Cycle, after: Cycle) -> dict[str, object]:
    return {
        "vertical": after.vertical,
        "then": {"round": before.round, "day": before.day.isoformat()},
        "now": {"round": after.round, "day": after.day.isoformat()},
        "judges_added": found.judges_added,
        "judges_removed": found.judges_removed,
        "changes": [asdict(one) for one in found.changes],
        "same": len(found.figures) - len(found.changes),
    }


def told(found: Difference) -> list[str]:
    """The judges that one round alone has, in words."""
    lists = (("new in this round", found.judges_added), ("no longer in the round", found.judges_removed))
    return [f"{', '.join(names)}: {what}" for what, names in lists if names]
