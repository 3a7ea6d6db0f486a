"""Writes new limits into the rule files of one vertical (PF-9 §5.2, §5.3, AC-8): the only way that a calibration does.

Comments, order and every other field stay. All files are validated as they would be before the first one is written,
and each is replaced whole.
"""

from __future__ import annotations

import difflib
import os.path
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

from evalcore.lint.limits import number, platform, platform_threshold, stated
from evalcore.registry import disk
from evalcore.registry.files import RegistryFiles, Tree
from evalcore.registry.thresholds import Stated
from evalcore.validation import checked
from evalcore.yaml.editing import NotEditable, edited
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import Parsed
from rampgate.console import Failure, plain
from rampgate.files import replacing, writing
from rampgate.registry.view import require_vertical
from schemas.judges import BaselineSource, Milestone, Provenance, Score, Thresholds, VerticalRuleFile, judge_id

DAYS = ("seeded_on", "calibrated_on", "recalibration_due")
_SCHEMA = "# yaml-language-server: $schema=../../../docs/schemas/vertical-rule-file.json"


@dataclass(frozen=True)
class NewLimits:
    """What a calibration derived for one judge, and where that comes from. `facts` are what the source has to state
    (`schemas.judges.Calibration`), without the day. `kl_threshold`: the limit of its drift, from the same source."""

    judge: str
    source: BaselineSource
    set_on: date
    due: date
    floor: float | None = None
    threshold: float | None = None
    calibration_ref: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    kl_threshold: float | None = None

    @property
    def provenance(self) -> dict[str, Any]:
        seed = self.source is BaselineSource.PROVISIONAL_SEED
        return {
            "baseline_source": self.source.value,
            "calibration_ref": self.calibration_ref,
            "recalibration_due": self.due,
            "calibration": {**self.facts, "seeded_on" if seed else "calibrated_on": self.set_on},
        }


@dataclass(frozen=True)
class FileChange:
    """One rule file as it is and as it is to be; `before` is empty of a file that is new."""

    path: Path
    judge: str
    before: bytes
    after: bytes

    @property
    def diff(self) -> str:
        old, new = self.before.decode().splitlines(keepends=True), self.after.decode().splitlines(keepends=True)
        shown = self.path.as_posix()
        return "".join(difflib.unified_diff(old, new, shown if self.before else "/dev/null", shown))


def fields_of(new: NewLimits, threshold: Thresholds | None = None) -> dict[str, Any]:
    """Returns the fields of a rule file, in the order in which files have them. `threshold` stands for the one derived
    where a vertical's is another one at some milestone."""
    own = new.threshold if threshold is None else threshold
    drift = _stated({"kl_threshold": new.kl_threshold, **new.provenance})
    return {
        **({"floor": new.floor} if new.floor is not None else {}),
        **new.provenance,
        **({"threshold": own} if own is not None else {}),
        **({"drift": drift} if new.kl_threshold is not None else {}),
    }


def _beside(files: RegistryFiles, new: NewLimits, own: Parsed[VerticalRuleFile] | None) -> dict[str, Any]:
    """The same for a file that states limits already: what is not derived keeps its source and its days."""
    judge, data = judge_id(new.judge), own.document.data if own is not None else {}
    threshold = own.model.threshold if own is not None else None
    before = {name: data.get(name) for name in Provenance.model_fields}
    other = own is not None and _undated(before) != _undated(new.provenance)
    if new.floor is None:
        of_floor = data.get("floor_provenance") or (_stated(before) if other else None)
        fields = fields_of(new, _threshold(files, judge, new.threshold))
        return {**fields, "floor_provenance": of_floor if "floor" in data else None}
    fields = fields_of(new, _raised(files, judge, threshold, new.floor))
    if other and any(number(value) >= new.floor for *_, value in stated(threshold)):
        return {**fields, **before, "floor_provenance": _stated(new.provenance)}
    return {**fields, "floor_provenance": None}


def _raised(files: RegistryFiles, judge: str, threshold: Thresholds | None, floor: float) -> Thresholds | None:
    """A vertical's threshold with what lies below the floor raised to it; None where nothing does."""
    own = Stated.of("", threshold)
    held = {milestone: own.at(milestone) for milestone in Milestone}
    of_all = {at: platform_threshold(files, judge, at) if value is None else value for at, value in held.items()}
    low = [milestone for milestone, value in of_all.items() if value is not None and number(value) < floor]
    if len(low) in (0, len(Milestone)):
        return floor if low else None
    kept = threshold.items() if isinstance(threshold, Mapping) else ()
    return {**{name: value for name, value in kept if number(value) >= floor}, **dict.fromkeys(low, floor)}


def below_the_platform(files: RegistryFiles, new: NewLimits) -> str:
    """Returns why a vertical may not have these limits: it never loosens the platform's (PF-9 §5.2); empty where it
    may."""
    judge = judge_id(new.judge)
    central = number(files.rules[judge].model.floor)
    if new.floor is not None and new.floor < central:
        return f"{new.floor:.4g} is below the platform's floor, {central:g}, which holds"
    if new.threshold is not None:
        least = min(number(platform(files, judge, milestone)) for milestone in Milestone)
        if new.threshold < least:
            return f"{new.threshold:.4g} is below the platform's threshold, {least:g}, which holds"
    return ""


def write_limits(configs: Path, vertical: str, limits: Sequence[NewLimits], *, write: bool = True) -> list[FileChange]:
    """Writes limits into the vertical's rule files, and returns what changed; without `write`, what would. Nothing is
    written where one of them can't be. A file that states the same limit from the same evidence keeps its days: looking
    at old scores again makes them no younger. Raises Failure."""
    try:
        tree = disk.read_tree(configs)
    except OSError as error:
        raise Failure(f"{error.filename or configs}: {error.strerror or error}") from error
    files, findings = checked(tree, disk.today())
    require_vertical(vertical, files.verticals)
    found: list[FileChange] = []
    after = tree
    for one in limits:
        name, change = _changed(tree, files, vertical, one)
        if change is not None:
            after, found = after.with_file(name, change.after), [*found, change]
    _require_sound(after, files.today, findings)
    put(found if write else ())
    return found


def put(changes: Iterable[FileChange]) -> None:
    """Replaces the files, each whole, and none where one can't be written. Raises Failure."""
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(writing(change.path))
            change.path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(replacing(change.path))
            file.write(change.after)
            file.flush()


def _changed(tree: Tree, files: RegistryFiles, vertical: str, new: NewLimits) -> tuple[str, FileChange | None]:
    """The file's name in the tree, and what changes in it. Raises Failure."""
    judge = judge_id(new.judge)
    if judge not in files.rules:
        raise Failure(f"{plain(new.judge)}: is not registered: add it to the central rules first")
    if why := below_the_platform(files, new):
        raise Failure(f"{judge}: {why}")
    name = _file_of(tree, vertical, judge)
    path, before = Path(os.path.normpath(tree.root / name)), tree.files.get(name, b"")
    own = files.vertical_rules.get((vertical, judge))
    if before and own is None:
        raise Failure(f"{path}: can't be read; `rampgate rules validate` shows why")
    if own is not None:
        seed = BaselineSource.PROVISIONAL_SEED
        for one in (own.model, own.model.floor_provenance) if new.source is seed else ():
            if one is not None and one.baseline_source is not seed:
                raise Failure(f"{path}: has a {one.baseline_source}; a seed is for a judge that has none (PF-9 §5.3)")
    wanted = _beside(files, new, own)
    if own is not None and _undated({name: own.document.data.get(name) for name in wanted}) == _undated(wanted):
        return name, None
    head = before or _head(files, vertical, judge).encode()
    try:
        written = edited(str(path), head, wanted)
    except NotEditable as error:
        raise Failure(str(error)) from error
    return name, FileChange(path, judge, before, written) if written != before else None


def _file_of(tree: Tree, vertical: str, judge: str) -> str:
    """The name of the vertical's file of the judge, in kebab or snake case; that of a new one is in snake case."""
    folder = f"rules/{vertical}/"
    there = (name for name in sorted(tree.files) if name.startswith(folder) and name.endswith(".yaml"))
    return next((name for name in there if judge_id(Path(name).stem) == judge), f"{folder}{judge}.yaml")


def _threshold(files: RegistryFiles, judge: str, derived: float | None) -> Thresholds | None:
    """A threshold that asks for no less than the platform at any milestone: one for all, or one for each."""
    if derived is None:
        return None
    each: dict[Milestone | Literal["default"], Score] = {}
    for milestone in Milestone:
        least = platform(files, judge, milestone)
        each[milestone] = least if number(least) > derived else derived
    if len({repr(value) for value in each.values()}) == 1:
        return each[Milestone.PRE_MERGE]
    return each


def _stated(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _undated(value: Any) -> Any:
    """The same without the days on which limits were made and are due."""
    if not isinstance(value, Mapping):
        return value
    return {name: _undated(one) for name, one in value.items() if name not in DAYS and one is not None}


def _head(files: RegistryFiles, vertical: str, judge: str) -> str:
    about = f"# What {vertical} sets for {judge}; rubric and classification are the central file's (PF-9 §5.2)."
    return f"{_SCHEMA}\n{about}\nclassification: {files.rules[judge].model.classification}\n"


def _require_sound(after: Tree, today: date, before: Sequence[Finding]) -> None:
    """Raises Failure where the files would hold an error that they do not hold now."""
    known = {(one.file, one.check, one.field, one.message) for one in before}
    for finding in checked(after, today)[1]:
        new = (finding.file, finding.check, finding.field, finding.message) not in known
        if finding.severity is Severity.ERROR and new:
            raise Failure(f"nothing was written, the rule file would hold an error: {finding}")
