"""Asks GitHub who approved a pull request, and what its description and labels are now (PC5 §5.5). An edge.

An event's payload is as old as its event, and a run that is repeated gets it again: labels, description and approvals
are read when they decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Generic, Literal, TypeVar

import httpx
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.overrides import Approval, PullRequest
from evalcore.scoring.chat_model import Client, retry_after
from evalcore.scoring.http_client import HttpClient
from streams.retry import RETRIED_STATUSES, Retry, TryAgain, reason_of

REPOSITORY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9._-]{1,100}", re.ASCII)
SECONDS: Final = 20.0
RETRY: Final = Retry(0.5, SECONDS, SECONDS, tries=4)
NodeT = TypeVar("NodeT")
QUERY: Final = """\
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      author { login }
      headRefOid
      body
      lastEditedAt
      editor { login }
      labels(first: 100) { nodes { name } }
      baseRefName
      baseRef {
        refUpdateRule { reviews: requiredApprovingReviewCount owners: requiresCodeOwnerReviews }
        rules(first: 100) {
          nodes {
            parameters {
              ... on PullRequestParameters { reviews: requiredApprovingReviewCount owners: requireCodeOwnerReview }
            }
          }
        }
      }
      mergedAt
      mergeCommit { oid }
      latestOpinionatedReviews(first: 100, writersOnly: true) {
        nodes { author { login } state submittedAt commit { oid } }
      }
    }
  }
}
"""
"""`latestOpinionatedReviews` leaves out comments, and of each reviewer all but the last word; `writersOnly` those who
may not write to the repository, such as a friend of the author's. What a branch requires before a merge stands in its
protection and in rulesets; of both whoever may read the repository may see this."""


class _Answered(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Nodes(_Answered, Generic[NodeT]):
    nodes: list[NodeT]


class _Actor(_Answered):
    login: str


class _Commit(_Answered):
    oid: str


class _Review(_Answered):
    author: _Actor | None = None
    state: str
    submitted_at: datetime | None = Field(None, alias="submittedAt")
    commit: _Commit | None = None


class _Rule(_Answered):
    """What a branch's protection, or a rule of a ruleset, requires; a rule that is not about reviews has neither."""

    reviews: int | None = None
    owners: bool | None = None


class _Branch(_Answered):
    protection: _Rule | None = Field(None, alias="refUpdateRule")
    rules: _Nodes[dict[Literal["parameters"], _Rule | None]] | None = None

    def all(self) -> list[_Rule]:
        found = [self.protection, *(one.get("parameters") for one in (self.rules.nodes if self.rules else ()))]
        return [one for one in found if one is not None]


class _Pull(_Answered):
    author: _Actor | None = None
    head: str = Field(alias="headRefOid")
    body: str
    edited_at: datetime | None = Field(None, alias="lastEditedAt")
    editor: _Actor | None = None
    labels: _Nodes[dict[Literal["name"], str]] | None = None
    reviews: _Nodes[_Review] | None = Field(None, alias="latestOpinionatedReviews")
    base: str = Field("", alias="baseRefName")
    branch: _Branch | None = Field(None, alias="baseRef")
    merged_at: datetime | None = Field(None, alias="mergedAt")
    merge: _Commit | None = Field(None, alias="mergeCommit")


async def read_pull_request(
    url: str, token: str | None, repository: str, number: int, retry: Retry | None = None
) -> PullRequest:
    """Return what GitHub's GraphQL API says now. Raises Unavailable, also where there is no such pull request, and
    Unauthorized."""
    owner, _, name = repository.partition("/")
    asked = orjson.dumps({"query": QUERY, "variables": {"owner": owner, "name": name, "number": number}})
    headers = {"content-type": "application/json", "user-agent": "rampgate"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        async with HttpClient(1, SECONDS) as client:
            content = await (retry or RETRY).call(lambda: _post(client, url, asked, headers), TryAgain)
        answer = orjson.loads(content)
    except TryAgain as error:
        raise Unavailable(f"GitHub: {error}") from error
    except orjson.JSONDecodeError as error:
        raise Unavailable("GitHub: its answer is no JSON") from error
    try:
        pull = _Pull.model_validate(answer["data"]["repository"]["pullRequest"])
    except (KeyError, TypeError, ValidationError) as error:
        message = f"GitHub: does not tell of pull request {number} of {repository}, or not to this token"
        raise Unavailable(message) from error
    reviews = pull.reviews.nodes if pull.reviews is not None else []
    rules = pull.branch.all() if pull.branch is not None else []
    return PullRequest(
        repository=repository, number=number, author=pull.author.login if pull.author else "", head=pull.head,
        description=pull.body, labels=tuple(one["name"] for one in pull.labels.nodes) if pull.labels else (),
        edited_at=pull.edited_at, edited_by=pull.editor.login if pull.editor else None,
        approvals=tuple(
            Approval(one.author.login, one.commit.oid, one.submitted_at)
            for one in reviews
            if one.state == "APPROVED" and one.author and one.commit and one.submitted_at
        ),
        base=pull.base, reviews_required=max((one.reviews or 0 for one in rules), default=0),
        owners_required=any(one.owners for one in rules),
        merged_as=pull.merge.oid if pull.merge is not None and pull.merged_at is not None else "",
        merged_at=pull.merged_at,
    )  # fmt: skip


async def _post(client: Client, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Raises TryAgain where another try may help, Unavailable and Unauthorized."""
    try:
        answer = await client.post(url, content=body, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise TryAgain(f"can't be reached ({reason_of(error)})") from error
    if answer.status_code in RETRIED_STATUSES:
        raise TryAgain(f"answers {answer.status_code}", retry_after(answer.headers))
    if answer.status_code in (401, 403):
        raise Unauthorized(f"GitHub: answers {answer.status_code}: the token may not read the pull request")
    if answer.status_code != 200:
        raise Unavailable(f"GitHub: answers {answer.status_code}")
    return answer.content
