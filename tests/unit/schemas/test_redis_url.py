"""What a URL of Sentinels says, and that one which says too little is refused without a word of it."""

from __future__ import annotations

import pytest

from schemas.settings import SentinelUrl, read_sentinel_url


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+sentinel://h/main", SentinelUrl((("h", 26379),), "main")),
        ("redis+sentinel://a:1,b:2,[::1]:3/main/7", SentinelUrl((("a", 1), ("b", 2), ("::1", 3)), "main", 7)),
        ("redis+sentinel://:p%40w%2F@a:1/my%20main/", SentinelUrl((("a", 1),), "my main", password="p@w/")),
        (
            "rediss+sentinel://u:p@a:1/main/0?sentinel_auth=true",
            SentinelUrl((("a", 1),), "main", 0, "u", "p", tls=True, sentinel_auth=True),
        ),
    ],
)
def test_a_url_of_sentinels_names_them_the_service_and_the_login(url: str, said: SentinelUrl) -> None:
    assert read_sentinel_url(url) == said


@pytest.mark.parametrize("url", ["redis://h", "rediss://h/0", "unix:///run/redis.sock", "", "h,i/main"])
def test_a_url_of_one_server_is_none_of_sentinels(url: str) -> None:
    assert read_sentinel_url(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://", "redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel:///main",
        "redis+sentinel://h,/main", "redis+sentinel://h:0/main", "redis+sentinel://h:x/main",
        "redis+sentinel://h:99999/main", "redis+sentinel://h/main/x", "redis+sentinel://h/main/-1", "redis+sentinel://u:p@w@h/main",
        "redis+sentinel://h/main?db=1", "redis+sentinel://h/main?sentinel_auth", "redis+sentinel://h/main#1",
    ],
)  # fmt: skip
def test_a_url_that_says_too_little_or_what_nobody_reads_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^must be redis\+sentinel://.* percent-encoded$"):
        read_sentinel_url(url)


def test_a_password_does_not_show() -> None:
    assert "hidden" not in repr(read_sentinel_url("redis+sentinel://u:hidden@h/main"))
