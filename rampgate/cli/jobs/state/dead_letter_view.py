"""Shows dead letters to a person: tables on stdout, progress on stderr.

Everything that comes from a record is escaped, so that its content can't control the terminal.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from schemas.dead_letter_answers import DeadLetterAnswer, DeadLetterList, StoredDeadLetter
from streams.dead_letters.listing import printable
from streams.dead_letters.replay import ReplayResult

HEAD = 4_096
"""Bytes of a value that `show` prints; --raw writes all of them."""
_COLOURS = {"open": "yellow", "replayed": "cyan", "resolved": "green", "not replayable": "red"}


def wide_console() -> Console:
    """A console as wide as the terminal; without one, wide enough for a table."""
    return Console(width=None if sys.stdout.isatty() else 160)


def show_list(answer: DeadLetterList) -> None:
    console = wide_console()
    if not answer["total"]:
        console.print("No dead letters match.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("failed at", "cause", "from", "key", "tries", "state", "detail"):
        table.add_column(name, overflow="fold", no_wrap=name in ("failed at", "cause", "tries", "state"))
    for row in answer["letters"]:
        state = f"[{_COLOURS[row['state']]}]{row['state']}[/]"
        table.add_row(
            row["failed_at"][:19].replace("T", " "),
            row["cause"],
            escape(f"{row['topic']}/{row['partition']}/{row['offset']}"),
            escape(row["key"] or "–"),
            str(row["attempts"]) + (f" (×{row['copies']})" if row["copies"] > 1 else ""),
            state,
            escape(row["detail"] + (f" ({row['why']})" if row["why"] else "")),
        )
    console.print(table)
    shown = len(answer["letters"])
    if shown < answer["total"]:
        console.print(f"\nThe last {shown} of {answer['total']}; --limit 0 shows all.")
    console.print()
    for cause, count in answer["by_cause"].items():
        console.print(f"[bold]{cause}[/] {count}", highlight=False)
        one = next((row for row in answer["letters"] if row["cause"] == cause), None)
        if one is not None:
            console.print(f"  {one['means']}\n  {one['do']}", highlight=False)
    if not answer["states_known"]:
        console.print("\n[yellow]Redis is out of reach: replayed and resolved letters may show as open.[/]")


def show_letter(letter: StoredDeadLetter, answer: DeadLetterAnswer, others: list[str]) -> None:
    console = wide_console()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    facts: dict[str, Any] = {
        "cause": answer["cause"],
        "what happened": answer["means"],
        "what to do": answer["do"],
        "detail": answer["detail"],
        "state": answer["state"] + (f" ({answer['why']})" if answer["why"] else ""),
        "replay id": answer["replay_id"],
        "attempts": answer["attempts"],
        "stage": answer["stage"],
        "failed at": answer["failed_at"],
        "came from": f"{answer['topic']}/{answer['partition']}/{answer['offset']}",
        "written at": answer["timestamp"] or "",
        "stored at": answer["place"],
        "also at": ", ".join(others),
        "key": answer["key"] if answer["key"] is not None else "none",
    }
    for name, fact in facts.items():
        if fact != "":
            table.add_row(name, escape(str(fact)))
    for name, content in letter.original_headers:
        table.add_row("header", escape(f"{printable(name.encode())}: {printable(content or b'')}"))
    console.print(table, highlight=False)
    console.print(f"\n[bold]value[/], {answer['size']} bytes" if answer["size"] is not None else "\nno value (null)")
    console.out(value_text(letter.record.value), highlight=False)


def value_text(value: bytes | None) -> str:
    """A value as indented JSON, as escaped text, or as hex. A long value is cut, and the text says so."""
    if value is None:
        return ""
    more = f"\n… {len(value) - HEAD} bytes more: --raw writes them all" if len(value) > HEAD else ""
    try:
        if not more:
            text = orjson.dumps(orjson.loads(value), option=orjson.OPT_INDENT_2).decode()
            return "\n".join(printable(line.encode()) for line in text.split("\n"))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    head = value[:HEAD]
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            rows = (head[at : at + 16] for at in range(0, min(len(head), 512), 16))
            lines = [f"{at * 16:08x}  {row.hex(' '):<47}  {printable_ascii(row)}" for at, row in enumerate(rows)]
            return "\n".join(lines) + (f"\n… {len(value) - 512} bytes more" if len(value) > 512 else "")
    return printable(head) + more


def printable_ascii(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def value_json(value: bytes | None) -> dict[str, Any] | None:
    """The whole value: `{encoding, data}`, with encoding json, text or base64."""
    if value is None:
        return None
    try:
        return {"encoding": "json", "data": orjson.loads(value)}
    except orjson.JSONDecodeError:
        pass
    try:
        return {"encoding": "text", "data": value.decode("utf-8")}
    except UnicodeDecodeError:
        return {"encoding": "base64", "data": base64.b64encode(value).decode()}


def show_result(result: ReplayResult, *, dry_run: bool, stderr: bool = False) -> None:
    console = Console(stderr=stderr)
    if not result.matched:
        console.print("No dead letters match: nothing to do.")
        return
    verb = "Would replay" if dry_run else "Replayed"
    console.print(f"{verb} {result.replayed} of {result.matched} dead letters.", highlight=False)
    for topic, count in result.by_topic.most_common():
        console.print(f"  {count} to {escape(topic)}", highlight=False)
    if result.already:
        console.print(f"  {result.already} were replayed before", highlight=False)
    if result.resolved:
        console.print(f"  {result.resolved} are resolved: their turns have the signal", highlight=False)
    if result.refused:
        console.print(f"[red]  {result.refused} can't be replayed:[/]", highlight=False)
        for letter, status in result.refusals[:20]:
            console.print(f"    {escape(printable(letter.place.encode()))}: {escape(status.why)}", highlight=False)
        if result.refused > 20:
            console.print(f"    and {result.refused - 20} more", highlight=False)
