"""The comments of a pull request as GitHub's GraphQL API lists, makes, edits and deletes them, for the stand-in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PULL_ID = "PR_kwDOmade_up"
LONGEST_BODY = 65_536
REFUSED = {"type": "FORBIDDEN", "message": "Resource not accessible by integration"}
GONE = {"type": "NOT_FOUND", "message": "Could not resolve to a node with the global id"}
TOO_LONG = {"type": "UNPROCESSABLE", "message": "Body is too long (maximum is 65536 characters)"}


@dataclass
class FakeComments:
    """`rows` are the comments, the oldest first. A token's user is what `users` says, else `github-actions`. `before`
    is called with each operation's name before it is carried out; a test lets others act there."""

    rows: list[dict[str, str]] = field(default_factory=list)
    users: dict[str, str] = field(default_factory=dict)
    may_write: bool = True
    before: Callable[[str], None] = lambda name: None
    done: list[str] = field(default_factory=list)
    made: int = 0
    texts: dict[str, list[str | None]] = field(default_factory=dict)
    """By comment what its history tells, the newest first: nothing of one that was never edited."""

    def add(self, author: str, body: str) -> dict[str, str]:
        self.made += 1
        at = f"2026-11-20T{self.made // 3600:02}:{self.made // 60 % 60:02}:{self.made % 60:02}Z"
        url = f"https://github.com/example/agents/pull/12#issuecomment-{self.made}"
        row = {"id": f"IC_{self.made}", "author": author, "body": body, "createdAt": at, "url": url}
        self.rows.append(row)
        return row

    def edit(self, row: dict[str, str], body: str) -> None:
        self.texts[row["id"]] = [body, *self.texts.get(row["id"], [row["body"]])]
        row["body"] = body

    def bodies(self, author: str = "github-actions") -> list[str]:
        return [row["body"] for row in self.rows if row["author"] == author]

    def answer(
        self, asked: Mapping[str, Any], token: str | None, pull: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """None for a query about something else."""
        found = re.search(r"\b(comments|nodes|node|addComment|updateIssueComment|deleteIssueComment)\(", asked["query"])
        if found is None:
            return None
        name, given = found[1], asked["variables"]
        self.before(name)
        user = self.users.get(token or "", "github-actions")
        if name == "comments":
            return {"data": {"repository": {"pullRequest": self._listed(given, user, pull())}}}
        if name == "nodes":
            by_id = {row["id"]: row for row in self.rows}
            return {"data": {"nodes": [by_id.get(one) for one in given["ids"]]}}
        if name == "node":
            return {"data": {"node": {"userContentEdits": {"nodes": self._history(given["id"])}}}}
        self.done.append(name)
        wrong = self._wrong(name, given, user)
        if wrong is not None:
            return {"data": {name: None}, "errors": [{**wrong, "path": [name]}]}
        return {"data": {name: self._written(name, given, user)}}

    def _history(self, comment: str) -> list[dict[str, str | None] | None]:
        """As GitHub tells it: a text that somebody deleted from the history is empty."""
        return [{"diff": text} for text in self.texts.get(comment, [])[:8]]

    def _listed(self, given: Mapping[str, Any], user: str, pull: Mapping[str, Any]) -> dict[str, Any]:
        first = int(given["after"] or 0)
        page = [
            {"id": row["id"], "createdAt": row["createdAt"], "viewerDidAuthor": row["author"] == user}
            for row in self.rows[first : first + 100]
        ]
        more = len(self.rows) > first + 100
        told = {"nodes": page, "pageInfo": {"hasNextPage": more, "endCursor": str(first + 100) if more else None}}
        return {"id": PULL_ID, "headRefOid": pull["headRefOid"], "comments": told}

    def _wrong(self, name: str, given: Mapping[str, Any], user: str) -> dict[str, str] | None:
        if not self.may_write:
            return REFUSED
        if len(given.get("body", "")) > LONGEST_BODY:
            return TOO_LONG
        if name == "addComment":
            return None if given["id"] == PULL_ID else GONE
        row = next((row for row in self.rows if row["id"] == given["id"]), None)
        if row is None:
            return GONE
        return None if row["author"] == user else REFUSED

    def _written(self, name: str, given: Mapping[str, Any], user: str) -> dict[str, Any]:
        if name == "addComment":
            return {"commentEdge": {"node": json.loads(json.dumps(self.add(user, given["body"])))}}
        row = next(row for row in self.rows if row["id"] == given["id"])
        if name == "deleteIssueComment":
            self.rows.remove(row)
            return {"clientMutationId": None}
        self.edit(row, given["body"])
        return {"issueComment": {"id": row["id"]}}
