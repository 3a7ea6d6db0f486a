"""Of a foreign service's error text only words of a closed list are shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.foreign_words import LONGEST_SHOWN, WORDS, foreign_words


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect API key provided: sk-Canary123", "Incorrect API key provided: …"),
        (
            "Rate limit reached for gpt-9 in organization org-canary on tokens",
            "Rate limit reached for … in … on tokens",
        ),
        ("code.model must not be null", "code.model must not be null"),
        ("invalid_api_key", "invalid_api_key"),
        ("your message 'Refund me, canary@example.org, 0171 555' was blocked", "your message '…' was blocked"),
        ("Привет canary", "…"),
        ("line\none", "… one"),
        ("", ""),
    ],
)
def test_what_is_wrong_is_shown_and_what_it_is_said_of_is_not(said: str, shown: str) -> None:
    assert foreign_words(said) == shown


@given(st.text(max_size=3_000))
def test_no_word_and_no_number_passes_that_is_not_on_the_list(text: str) -> None:
    found = foreign_words(text)
    assert len(found) <= LONGEST_SHOWN
    assert found.isprintable()
    assert not re.search(r"\d", found)
    words = re.findall(r"\w+", found.replace("_", " ").removesuffix("…"))
    assert {word.lower() for word in words[:-1]} <= WORDS
