"""Reads the registered verticals: one YAML file each in `configs/verticals/`."""

from __future__ import annotations

from pathlib import Path

from agents.ports import Unauthorized
from evalcore.registry.disk import read
from evalcore.yaml.models import read_as
from rampgate.settings import Settings, SettingsError, revealed
from schemas.settings import in_the_clear, read_secret
from schemas.verticals import Vertical


def require_folder(configs: Path) -> None:
    """Raises SettingsError where the registry's folder is missing: what needs it would be answered wrongly."""
    if not configs.is_dir():
        raise SettingsError(
            f"{configs.absolute()}: no such folder; name the registry's folder with --configs or RAMPGATE_CONFIGS"
        )


def load_verticals(configs: Path, *, needed: bool = True) -> dict[str, Vertical]:
    """The verticals by name; of a missing folder none, unless they are `needed`. Raises SettingsError that lists all
    errors of all files."""
    if needed:
        require_folder(configs)
    found: dict[str, Vertical] = {}
    wrong: list[str] = []
    for path in sorted((configs / "verticals").glob("*.yaml")):
        try:
            parsed, findings = read_as(Vertical, str(path), read(path))
        except OSError as error:
            wrong.append(f"{path}: can't be read: {error}")
            continue
        wrong += map(str, findings)
        if parsed is None:
            continue
        vertical = parsed.model
        if vertical.name != path.stem:
            wrong.append(f"{path}: name: {vertical.name!r} is not the file's name; rename one of them")
        else:
            found[vertical.name] = vertical
    if wrong:
        raise SettingsError("\n".join(wrong))
    return found


def key_of(vertical: Vertical, settings: Settings) -> str | None:
    """The key to the vertical's Opik project: its own, else the operator's. Raises ValueError for an unreadable file,
    and for a key of its own that would be sent in the clear to another machine."""
    if vertical.api_key_file is None:
        return revealed(settings.opik_api_key)
    if in_the_clear(settings.opik) and not settings.allow_plaintext:
        raise ValueError("would be sent in the clear to Opik; use https://, or, knowingly, set allow_plaintext")
    return read_secret(vertical.api_key_file)


def workspace_of(vertical: Vertical, settings: Settings) -> str:
    return vertical.workspace if "workspace" in vertical.model_fields_set else settings.opik_workspace


def access_of(owner: Vertical | None, settings: Settings) -> tuple[str | None, str]:
    """The key and the workspace with which Opik is asked: the vertical's, the operator's where there is no vertical.
    Raises Unauthorized where the vertical's key can't be read."""
    if owner is None:
        return revealed(settings.opik_api_key), settings.opik_workspace
    try:
        return key_of(owner, settings), workspace_of(owner, settings)
    except ValueError as error:
        raise Unauthorized(f"api_key_file of {owner.name}: {error}") from error
