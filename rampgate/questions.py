"""What can be wrong with a question, whoever is asked."""

from __future__ import annotations


class BadQuestion(ValueError):
    """The question can't be asked like this; the message says how."""
