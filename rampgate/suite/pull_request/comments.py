"""Reads and writes the comments of a pull request that the token's own user made. An edge.

A stranger's comments are counted and not read: their authors decide neither what is edited nor how much is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agents.ports import Unavailable
from rampgate.ci_gate.github import GitHub

LISTED: Final = """\
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      id
      headRefOid
      comments(first: 100, after: $after) {
        nodes { id viewerDidAuthor createdAt }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}
"""
BODIES: Final = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id body url } } }"
TEXTS: Final = """\
query($id: ID!) {
  node(id: $id) { ... on IssueComment { userContentEdits(first: 8) { nodes { diff } } } }
}
"""
"""The last texts of a comment, the newest first: `diff` holds the whole of each. Others that write at the same time are
among the last few."""
ADD: Final = """\
mutation($id: ID!, $body: String!) {
  addComment(input: {subjectId: $id, body: $body}) { commentEdge { node { id body url createdAt } } }
}
"""
EDIT: Final = """\
mutation($id: ID!, $body: String!) {
  updateIssueComment(input: {id: $id, body: $body}) { issueComment { id } }
}
"""
DELETE: Final = "mutation($id: ID!) { deleteIssueComment(input: {id: $id}) { clientMutationId } }"
AT_ONCE: Final = 10
"""Bodies of one answer: of the longest, escaped, fewer bytes than are read of an answer."""
REFUSED: Final = ("FORBIDDEN", "INSUFFICIENT_SCOPES")


class MayNotWrite(Exception):
    """The token may not comment, such as that of a pull request from a fork."""


@dataclass(frozen=True)
class Comment:
    """One comment. `at` is when it was made, as ISO 8601 in UTC."""

    id: str
    at: str
    body: str
    url: str


@dataclass(frozen=True)
class Conversation:
    """A pull request's last commit, and the comments that are the token's user's own, in the order they were made."""

    id: str
    head: str
    own: Sequence[Comment]


class Comments:
    """A pull request's comments on GitHub. Methods raise Unavailable and Unauthorized."""

    def __init__(self, github: GitHub) -> None:
        self._github = github

    async def read(self, repository: str, number: int) -> Conversation:
        owner, _, name = repository.partition("/")
        asked = {"owner": owner, "name": name, "number": number}
        made: dict[str, str] = {}
        after: str | None = None
        while True:
            answer = await self._github.ask(LISTED, {**asked, "after": after})
            try:
                pull = answer["data"]["repository"]["pullRequest"]
                identity, head, listed = str(pull["id"]), str(pull["headRefOid"]), pull["comments"]
                made |= {str(one["id"]): str(one["createdAt"]) for one in listed["nodes"] if one["viewerDidAuthor"]}
                page = listed["pageInfo"]
                more, end = page["hasNextPage"], page["endCursor"]
            except (KeyError, TypeError) as error:
                message = f"GitHub: does not tell of pull request {number} of {repository}, or not to this token"
                raise Unavailable(message) from error
            if not more or end == after:
                break
            after = end
        found = [one for first in range(0, len(made), AT_ONCE) for one in await self._bodies(made, first)]
        return Conversation(identity, head, sorted(found, key=lambda one: (one.at, one.id)))

    async def _bodies(self, made: Mapping[str, str], first: int) -> list[Comment]:
        """A comment that is gone by now is left out."""
        answer = await self._github.ask(BODIES, {"ids": [*made][first : first + AT_ONCE]})
        try:
            return [
                Comment(str(one["id"]), made[one["id"]], str(one["body"]), str(one["url"]))
                for one in answer["data"]["nodes"]
                if one
            ]
        except (KeyError, TypeError) as error:
            raise Unavailable("GitHub: does not tell what the comments say") from error

    async def texts(self, comment: str) -> list[str]:
        """The comment's last texts, also those that others have written over. Empty where GitHub does not tell."""
        answer = await self._github.ask(TEXTS, {"id": comment})
        try:
            nodes = answer["data"]["node"]["userContentEdits"]["nodes"]
            return [str(one["diff"]) for one in nodes if one and one["diff"]]
        except (KeyError, TypeError):
            return []

    async def add(self, pull: str, body: str) -> Comment:
        """Raises MayNotWrite, too."""
        made = (await self._write(ADD, "addComment", {"id": pull, "body": body}))["commentEdge"]["node"]
        return Comment(str(made["id"]), str(made["createdAt"]), body, str(made["url"]))

    async def edit(self, comment: str, body: str) -> None:
        """Of one that is gone by now nothing is left to edit. Raises MayNotWrite, too."""
        await self._write(EDIT, "updateIssueComment", {"id": comment, "body": body}, may_be_gone=True)

    async def delete(self, comment: str) -> None:
        """Raises MayNotWrite, too."""
        await self._write(DELETE, "deleteIssueComment", {"id": comment}, may_be_gone=True)

    async def _write(self, mutation: str, name: str, given: Mapping[str, str], *, may_be_gone: bool = False) -> Any:
        answer = await self._github.ask(mutation, given)
        errors = answer.get("errors") if isinstance(answer, Mapping) else None
        kinds = [str(one.get("type")) for one in errors or () if isinstance(one, Mapping)]
        if any(kind in REFUSED for kind in kinds):
            raise MayNotWrite(f"{name} is refused")
        if may_be_gone and kinds == ["NOT_FOUND"]:
            return {}
        try:
            done = answer["data"][name]
        except (KeyError, TypeError):
            done = None
        if errors or not isinstance(done, Mapping):
            raise Unavailable(f"GitHub: {name} fails ({', '.join(kinds) or 'no reason given'})")
        return done
