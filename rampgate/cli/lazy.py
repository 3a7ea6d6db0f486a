"""A group of commands whose modules are imported when one of theirs is called: `--help` needs none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group


class Entry(NamedTuple):
    """A command, or a group of them: the module that registers it, what `--help` says of it, and who needs it."""

    module: str
    summary: str
    users: str


class LoadedCommands(MutableMapping[str, Any]):
    """The commands by name; each is built from its module when it is asked for, and with it all of that module's."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            app = typer.Typer(rich_markup_mode=None)
            import_module(self._entries[name].module).register(app)
            self._built |= get_group(app).commands
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("a command can't be taken away")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class LazyGroup(TyperGroup):
    """The commands of `entries`, which a subclass sets; its help lists them by who needs them."""

    entries: Mapping[str, Entry] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LoadedCommands(self.entries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        by_users: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            by_users.setdefault(entry.users, []).append((name, entry.summary))
        for users, rows in by_users.items():
            with formatter.section(users):
                formatter.write_dl(rows)
