"""The registered verticals: one YAML file each in `configs/verticals/`."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rampgate.settings import SettingsError
from schemas.verticals import Vertical

MAX_BYTES = 100_000


def load_verticals(configs: Path) -> dict[str, Vertical]:
    """By name. No folder means no registered vertical; a file that is wrong raises SettingsError naming it."""
    found: dict[str, Vertical] = {}
    for path in sorted((configs / "verticals").glob("*.yaml")):
        if path.stat().st_size > MAX_BYTES:
            raise SettingsError(f"{path}: larger than {MAX_BYTES} bytes; a vertical is a few lines")
        try:
            data = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
            vertical = Vertical.model_validate(data)
        except (YAMLError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: not valid YAML: {error}") from error
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "file"
            raise SettingsError(f"{path}: {field}: {first['msg']}") from error
        if vertical.name != path.stem:
            raise SettingsError(f"{path}: name: {vertical.name!r} is not the file's name; call one like the other")
        found[vertical.name] = vertical
    return found
