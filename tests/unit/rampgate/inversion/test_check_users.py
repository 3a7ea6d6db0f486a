"""`rampgate check inversion --users`: closed weeks of Opik's turns, the document, the exit code, what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcore.inversion.users import Week
from rampgate import user_turns
from rampgate.command import Context
from rampgate.console import Failure
from rampgate.inversion.users import against_users
from tests.contract.opik.scripted_opik import trace_id_at

WEEK = Week(2026, 45)
NOW = WEEK.closes(timedelta(days=8))
Ask = Callable[..., tuple[int, dict[str, Any]]]


class OpikOfWeeks:
    """Traces of one project by a window, as `OpikTraces` gives them."""

    def __init__(self, traces: list[dict[str, Any]]) -> None:
        self._traces = traces

    async def window(
        self, project: str, since_ms: int, until_ms: int, *, whole: bool = False, having: Sequence[str] = (),
        after: str = "",
    ) -> AsyncIterator[list[dict[str, Any]]]:  # fmt: skip
        held = [{score["name"] for score in one["feedback_scores"]} for one in self._traces]
        inside = [
            one
            for one, names in zip(self._traces, held, strict=True)
            if since_ms <= one["at"] < until_ms and names >= set(having)
        ]
        yield inside


def traces_of(week: Week, rho: float, users: int = 300, **scores: float) -> list[dict[str, Any]]:
    draw = np.random.default_rng(week.number)
    out = []
    for number in range(users):
        thumb = -1.0 if draw.random() < 0.4 else 1.0
        at = week.since_ms + 1_000 * number
        judged = rho * thumb + float(np.sqrt(1 - rho**2) * draw.normal())
        held = {"user_signal_thumbs": thumb, "user_signal_reroll": 0.0, "tone": judged, **scores}
        out.append({
            "id": trace_id_at(at), "at": at, "start_time": datetime.fromtimestamp(at / 1000, UTC).isoformat(),
            "metadata": {"response_id": f"{week} {number}", "user_id": f"u{number}", "vertical": "receipts"},
            "feedback_scores": [{"name": name, "value": value, "source": "sdk"} for name, value in held.items()],
        })  # fmt: skip
    return out


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    folder = tmp_path / "verticals"
    folder.mkdir()
    (folder / "receipts.yaml").write_text("name: receipts\nproject: receipts\n")
    monkeypatch.chdir(tmp_path)

    def asked(traces: list[dict[str, Any]], week: str | None = None, vertical: str | None = None) -> Any:
        @asynccontextmanager
        async def opened(*given: object, **options: object) -> AsyncIterator[OpikOfWeeks]:
            yield OpikOfWeeks(traces)

        monkeypatch.setattr(user_turns, "opened", opened)
        found = against_users(Context.of(NOW, configs=tmp_path), vertical, week)
        return found.exit_code, found

    return asked


def test_pf9_fr10_5_4_a_judge_against_users_in_two_closed_weeks_is_told_with_its_statistics(ask: Ask) -> None:
    code, found = ask([*traces_of(WEEK.before, -0.5), *traces_of(WEEK, -0.5)])
    assert (code, found["week"], found["inverted_count"]) == (1, "2026-W45", 1)
    (one,) = found["judges"]
    assert (one["judge_id"], one["vertical"], one["signal"], one["week"]) == ("tone", "receipts", "thumbs", "2026-W45")
    assert (one["n"], one["weeks_in_a_row"], one["against"], one["inverted"]) == (300, 2, True, True)
    assert one["effective_n"] == pytest.approx(300)
    assert one["pearson_ci95"][0] < one["pearson"] < one["pearson_ci95"][1] < 0
    assert one["adjusted_p"] < 0.025
    assert one["carries_signal"] is True
    assert one["reason"]


def test_one_week_and_an_open_one_tell_of_nobody(ask: Ask) -> None:
    after = Week.of(WEEK.until_ms)
    code, found = ask([*traces_of(WEEK.before, 0.3), *traces_of(WEEK, -0.5), *traces_of(after, -0.9)])
    assert (code, [(one["against"], one["weeks_in_a_row"], one["inverted"]) for one in found["judges"]]) == (
        0, [(True, 1, False)],
    )  # fmt: skip
    with pytest.raises(Failure, match="2026-W46 is open until 2026-11-23"):
        ask([], week="2026-W46")
    assert ask(traces_of(WEEK.before, 0.3), week="2026-W44")[1]["week"] == "2026-W44"


def test_a_week_without_thumbs_is_not_fine(ask: Ask) -> None:
    assert ask([]) == (1, {"week": "2026-W45", "judges": [], "inverted_count": 0, "rerolls": []})
    code, found = ask(traces_of(WEEK, 0.5, users=9))
    assert (code, found["judges"][0]["inverted"], found["judges"][0]["n"]) == (1, None, 9)
    assert found["judges"][0]["carries_signal"] is None
    assert ask(traces_of(WEEK, 0.0))[1]["judges"][0]["carries_signal"] is False


def test_rerolls_are_told_apart(ask: Ask) -> None:
    """PF-9 Decision 12."""
    traces = traces_of(WEEK, 0.5)
    for number, trace in enumerate(traces):
        trace["feedback_scores"][1]["value"] = float(number % 2)
        trace["feedback_scores"][2]["value"] += 3.0 * (number % 2)
    code, found = ask(traces)
    assert (code, found["inverted_count"]) == (0, 0)
    assert [(one["signal"], one["against"], one["inverted"]) for one in found["rerolls"]] == [("reroll", True, False)]


@pytest.mark.parametrize(
    ("week", "vertical", "said"),
    [("2026-W60", None, "--week"), ("last", None, "is no week"), (None, "elsewhere", "--vertical: elsewhere")],
)
def test_what_is_no_week_or_vertical_is_refused(ask: Ask, week: str | None, vertical: str | None, said: str) -> None:
    with pytest.raises(Failure, match=said):
        ask([], week, vertical)
