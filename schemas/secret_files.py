"""Secrets in files. No message quotes what is in them."""

from __future__ import annotations

from pathlib import Path


def read_secret(path: Path) -> str:
    """The file's text without space around it. ValueError, without a word of the text, where there is none."""
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise ValueError(f"can't read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None
    if not text:
        raise ValueError(f"{path} is empty")
    return text
