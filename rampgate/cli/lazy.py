"""A group of commands whose modules are imported when one of theirs is called: `--help` needs none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from rampgate.console import Failure


class Entry(NamedTuple):
    """A command, `module:function`, or a group of them, which has no module; what `--help` says of it, and who needs
    it."""

    module: str
    summary: str
    users: str = ""


class FramedCommand(TyperCommand):
    """A command of the frame; options that it no longer has are refused with what replaces them, `gone`."""

    gone: Mapping[str, str] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for option in (word.partition("=")[0] for word in args):
            if option in self.gone:
                raise Failure(f"{option}: is no option any more; {self.gone[option]}")
        return super().parse_args(ctx, args)


class LoadedCommands(MutableMapping[str, Any]):
    """The commands of a group by name; each is built when it is asked for. `entries`: names with spaces are those of
    the groups within, as `check drift`."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built |= self._build(name, self._entries[name])
        return self._built[name]

    def _build(self, name: str, entry: Entry) -> Mapping[str, Any]:
        module, _, function = entry.module.partition(":")
        if not module:
            within = {
                one.partition(" ")[2]: inner for one, inner in self._entries.items() if one.startswith(f"{name} ")
            }
            return {name: LazyGroup(within, name=name, help=entry.summary, no_args_is_help=True)}
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        from rampgate.command import callback, gone_options

        called = getattr(import_module(module), function)
        app.command(name, cls=FramedCommand)(callback(called))
        made: Any = get_command(app)
        made.gone = gone_options(called)
        return {name: made}

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("a command can't be taken away")

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._entries if " " not in name)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LazyGroup(TyperGroup):
    """The commands of `entries`; its help lists them by who needs them."""

    entries: Mapping[str, Entry] = {}

    def __init__(self, entries: Mapping[str, Entry] | None = None, **attributes: Any) -> None:
        super().__init__(**{"rich_markup_mode": None, **attributes})
        self.entries = entries if entries is not None else self.entries
        self.commands = LoadedCommands(self.entries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        by_users: dict[str, list[tuple[str, str]]] = {}
        for name in self.commands:
            entry = self.entries[name]
            by_users.setdefault(entry.users or "Commands", []).append((name, entry.summary))
        for users, rows in by_users.items():
            with formatter.section(users):
                formatter.write_dl(rows)
