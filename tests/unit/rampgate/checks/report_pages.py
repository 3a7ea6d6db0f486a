"""What tests ask of a report's page, and a text that would break out of one."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = "<script>alert(1)</script>|`**@team\n# [x](http://evil)"


class Page(HTMLParser):
    """The tags of a page, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.words = list[str](), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += f"{data}\n"
