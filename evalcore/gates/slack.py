"""Text as Slack's incoming webhooks take it. Pure."""

from __future__ import annotations


def message(text: str) -> dict[str, str]:
    """The three signs of Slack's markup are escaped: names come from traces and requests."""
    for sign, word in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, word)
    return {"text": text}
