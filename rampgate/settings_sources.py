"""Loads settings from flags, environment and `rampgate.toml`, and shows them without what is secret (contracts §7)."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rampgate.settings import SECRETS, URL_PASSWORD, Settings, SettingsError, hide_password

PREFIX = "RAMPGATE_"
_JSON = ("kafka_security", "cluster_kinds")
_NOT_SETTINGS = ("settings", "cache")
"""`RAMPGATE_SETTINGS` names the file, `RAMPGATE_CACHE` the folder of the services' jars."""


def json_object(key: str, text: str) -> dict[str, Any]:
    """Parse a setting that is JSON. The SettingsError names the place and quotes nothing: it may be a password."""
    try:
        value = json.loads(text)
    except ValueError as error:
        at = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise SettingsError(f"{key}: not valid JSON{at}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{key}: must be a JSON object")
    return value


def load_settings(flags: dict[str, Any] | None = None, file: Path | None = None) -> Settings:
    """Settings from flags over environment over `rampgate.toml` over defaults.

    Raises SettingsError naming the source, the field and what to do; unknown keys are errors in every source.
    """
    path = file or Path(os.environ.get(f"{PREFIX}SETTINGS", "rampgate.toml"))
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    if path.exists():
        try:
            values = tomllib.loads(path.read_text())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: not valid TOML: {error}") from error
        except OSError as error:
            raise SettingsError(f"{path}: can't be read: {error.strerror}") from error
        origin = {key: str(path) for key in values}
    elif file is not None:
        raise SettingsError(f"{path}: no such settings file")
    env: dict[str, Any] = {}
    for key, text in os.environ.items():
        name = key.removeprefix(PREFIX).lower()
        if key.startswith(PREFIX) and name not in _NOT_SETTINGS:
            env[name] = json_object(key, text) if name in _JSON else text
            origin[name] = key
    override(values, env)
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    override(values, given)
    origin |= {name: "--" + name.replace("_", "-") for name in given}
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            name = str(item["loc"][0]) if item["loc"] else _named(item["msg"])
            where = origin.get(name, name or "settings")
            hint = "; no such setting, see `rampgate settings`" if item["type"] == "extra_forbidden" else ""
            lines.append(f"{where}: {'.'.join(map(str, item['loc'])) or 'settings'}: {item['msg']}{hint}")
        raise SettingsError("\n".join(lines)) from error
    for name, value in given.items():
        if name in SECRETS or (isinstance(value, str) and URL_PASSWORD.search(value)):
            raise SettingsError(
                f"{origin[name]}: {name}: every user of this machine can read a command line, so no password may stand "
                f"there: give it in {PREFIX}{name.upper()}, in a file, or in rampgate.toml"
            )
    return settings


def _named(message: str) -> str:
    """The setting that an error about several begins with, empty for none."""
    name = message.removeprefix("Value error, ").partition(":")[0]
    return name if name in Settings.model_fields else ""


def override(values: dict[str, Any], higher: dict[str, Any]) -> None:
    """Override values of a lower source. A secret and the file that holds one are two forms of one setting."""
    for name in SECRETS:
        forms = (name, f"{name}_file")
        if any(form in higher for form in forms):
            for form in forms:
                values.pop(form, None)
    values |= higher


def shown_settings(settings: Settings) -> dict[str, Any]:
    """Every setting in a form that may be shown: secrets and passwords in URLs are `***`."""
    shown: dict[str, Any] = settings.model_dump(mode="json")
    for name in SECRETS:
        shown[name] = "***" if getattr(settings, name) is not None else None
    return {name: hide_password(value) if isinstance(value, str) else value for name, value in shown.items()}
