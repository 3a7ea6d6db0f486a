"""What a session's value gives back is what went in."""

from hypothesis import given
from hypothesis import strategies as st

from agents.join.sessions import decode_session, encode_session, shorten
from agents.join.turn import Session

ids = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    st.binary(min_size=1, max_size=30).map(lambda b: "resp_" + b.hex()),
    st.sampled_from(["resp_", "resp_A0", "resp_a", "resp_a0 b1", "resp_ａ０"]),
)
times = st.integers(0, 4_000_000_000_000)
sessions = st.builds(Session, st.binary(min_size=8, max_size=8), times, times, ids, st.integers(1, 10**9))


@given(st.lists(sessions, min_size=1, max_size=30))
def test_a_session_survives_its_encoding(turns: list[Session]) -> None:
    assert decode_session(encode_session(turns)) == turns


def test_an_openai_id_takes_half_its_digits() -> None:
    assert shorten("resp_" + "0a" * 24) == b"\xff" + b"\x0a" * 24


def test_an_id_that_would_come_back_changed_is_kept_as_text() -> None:
    for text in ("resp_0A", "resp_0a 0b", "resp_0", "resp_", "other_0a"):
        assert shorten(text) == text.encode()
