"""Reads a JSON document that another command told, as its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from rampgate.console import Failure

LARGEST: Final = 256 << 20
Model = TypeVar("Model", bound=BaseModel)


def read_told(path: Path, model: type[Model], source: str) -> tuple[Model, Any]:
    """Returns the document as its model, and all that the file tells. `source`: what to give in its place. Raises
    Failure."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise Failure(f"{path}: longer than any; give {source}")
        told = orjson.loads(content)
        return model.model_validate(told), told
    except OSError as error:
        raise Failure(f"{path}: can't be read: {error.strerror or error}; give {source}") from error
    except orjson.JSONDecodeError as error:
        raise Failure(f"{path}: is no JSON ({error}); give {source}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part)[:80] for part in first["loc"]) or "the document"
        raise Failure(f"{path}: {field}: {first['msg']}; give {source}") from error
