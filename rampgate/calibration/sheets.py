"""Sheets of a round for annotators: one row for each drawn turn and judge goes out, the same with a score comes back.

A sheet has users' texts, so it is written where somebody says and never into the round's folder.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalcore.registry.judge import Judge
from rampgate.calibration.folder import Rating
from rampgate.calibration.turns import ScoredTurn, off_scale
from rampgate.input_files import BadFile, content, wrong
from schemas.judges import ScoreType

HEADS = (
    "item_id", "category", "judge_id", "lowest", "highest", "user_query", "agent_response", "annotator", "score",
)  # fmt: skip
LONGEST_TEXT = 30_000
"""Characters of a text on a sheet; spreadsheets hold 32,767 in a cell."""
_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_WORDS = {"true": 1.0, "false": 0.0}


def sheet(asked: Iterable[tuple[str, str]], turns: Mapping[str, ScoredTurn], judges: Mapping[str, Judge]) -> str:
    """Returns an empty sheet of the turns and judges asked for, as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADS)
    for item, name in asked:
        turn, (low, high) = turns[item], judges[name].score_range
        texts = (_cell(turn.question), _cell(turn.answer))
        writer.writerow([_cell(item), _cell(turn.category), name, f"{low:g}", f"{high:g}", *texts, "", ""])
    return out.getvalue()


def read_sheets(
    paths: Sequence[Path], asked: Mapping[str, frozenset[str]], judges: Mapping[str, Judge]
) -> list[Rating]:
    """The ratings of sheets, in the order of turns, judges and annotators; a row without a score is none. `asked` are
    the judges of each drawn turn. Raises BadFile."""
    found: dict[tuple[str, str, str], tuple[str, float]] = {}
    cells = {_cell(item): item for item in asked}
    for path in paths:
        for number, row in _rows(path):
            if not (said := row["score"].strip()):
                continue
            item, judge, annotator = row["item_id"], row["judge_id"], row["annotator"].strip()
            item = cells.get(item, item)
            if item not in asked:
                raise wrong(path, number, "item_id", "of a turn that was drawn in this round", item)
            if judge not in asked[item]:
                raise wrong(path, number, "judge_id", f"a judge that scored {item[:80]!r}", judge)
            if not annotator or not annotator.isprintable() or len(annotator) > 200:
                raise wrong(path, number, "annotator", "a name of one line", annotator)
            score, here = _score(path, number, said, judges[judge]), f"{path}:{number}"
            before, _ = found.setdefault((item, judge, annotator), (here, score))
            if before != here:
                raise BadFile(f"{here}: annotator: {annotator[:80]!r} rated {item[:80]!r} for {judge} at {before} too")
    return [Rating(*key, score) for key, (_, score) in sorted(found.items())]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        text = content(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile(f"{path}: must be UTF-8, got other bytes; save the sheet as CSV UTF-8") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for field in (heads := reader.fieldnames or ()):
            if heads.count(field) > 1:
                raise BadFile(f"{path}:1: {field[:80]}: two columns have this name; keep one")
        for field in ("item_id", "judge_id", "annotator", "score"):
            if field not in (reader.fieldnames or ()):
                raise BadFile(f"{path}:1: {field}: the column is missing; the sheet's first line names its columns")
        for row in reader:
            if None in row or None in row.values():
                raise BadFile(f"{path}:{reader.line_num}: has not the {len(heads)} cells of the first line")
            yield reader.line_num, row
    except csv.Error as error:
        raise BadFile(f"{path}:{reader.line_num}: no CSV: {error}") from error


def _score(path: Path, number: int, said: str, judge: Judge) -> float:
    score = float(said) if _NUMBER.fullmatch(said) else math.nan
    if judge.score_type is ScoreType.BOOLEAN:
        score = _WORDS.get(said.lower(), score)
    if must := off_scale(score, judge):
        raise wrong(path, number, "score", must, said)
    return score


def _cell(value: Any) -> str:
    """A text for a spreadsheet, which takes no formula from a user."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    text = text.encode("utf-8", "replace").decode().replace("\0", "")
    text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} [… {len(text)} characters]"
    return f"'{text}" if text.startswith(_BEGINS_A_FORMULA) else text
