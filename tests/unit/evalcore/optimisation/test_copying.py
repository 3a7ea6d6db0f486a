"""PF-9 FR-9, §5.7: a fork that copies an item is found by runs of words, not by what they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalcore.optimisation.copying import RUN, Items, texts_of, words

CURRENT = "You help shoppers. Be kind."
ITEM = "my parcel went to the wrong house and the neighbour keeps it"
WORDS = st.lists(st.text("abcdefghij", min_size=2, max_size=9), min_size=RUN, max_size=20)


@given(WORDS, st.text(max_size=40), st.text(max_size=40))
def test_every_run_of_words_of_an_item_is_found_wherever_it_stands(said: list[str], before: str, after: str) -> None:
    fork = f"{before} . {' '.join(said[:RUN])} . {after}"
    assert Items([" ".join(said)]).copied(fork, "")


def test_it_is_found_however_it_is_written() -> None:
    items = Items([ITEM])
    for fork in (
        "If MY PARCEL, went -- to the WRONG house, say sorry.",
        "If my\u200b par\u00adcel we\u0301nt to the\nwrong * house",
        "If ｍｙ ｐａｒｃｅｌ went to the wrong house",
    ):
        assert items.copied(fork, CURRENT), fork


def test_fewer_words_in_a_row_and_what_the_prompt_had_before_are_not_copied() -> None:
    items = Items([ITEM])
    assert not items.copied("If a parcel went to the wrong place, say sorry.", CURRENT)
    assert not items.copied(f"{CURRENT} Say: my parcel went to the wrong house", "my parcel went to the wrong house")


def test_a_short_text_is_copied_where_all_of_it_is() -> None:
    items = Items(["refund my socks", "hello there"])
    assert items.copied("When they say: Refund my socks!", CURRENT)
    assert not items.copied("When they say: refund my shoes, say hello there.", CURRENT)


def test_a_long_number_of_an_item_is_copied_by_itself() -> None:
    items = Items(["order 4711-0815993 is late", "in 2026"])
    assert items.copied("See 0815993 for how.", CURRENT) == ("0815993",)
    assert not items.copied("See 4711 of 2026 for how.", CURRENT)


def test_scripts_without_spaces_are_read_sign_by_sign() -> None:
    assert Items(["我的包裹被送到了错误的地址"]).copied("如果包裹被送到了错误的地方, 请道歉", CURRENT)
    assert words("我的 parcel") == ["我", "的", "parcel"]


def test_all_texts_of_an_item_are_looked_at() -> None:
    item = {"input": {"messages": [{"content": "deep"}]}, "metadata": {"tags": ["tag", 3]}, "output": None}
    assert list(texts_of(item)) == ["deep", "tag"]
