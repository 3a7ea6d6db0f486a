"""Where a candidate is asked: what a request says of itself changes neither host nor path (contracts §3)."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalcore.scoring.http_client import HttpClient
from schemas.manifests import CandidateEndpoint, address
from streams.gates.candidate import CandidateClient
from tests.unit.rampgate.ci_gate.gate_rig import candidate

URL = "https://agents.internal:8443/run/{agent_id}/{agent_version}/answer?by={agent_version}"


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_no_id_leaves_its_place_in_the_address(agent: str, version: str) -> None:
    if agent in (".", "..") or version in (".", ".."):
        with pytest.raises(ValueError, match="can't be a part of the candidate's address"):
            address(URL, agent, version)
        return
    made = urlsplit(address(URL, agent, version))
    assert (made.scheme, made.netloc, made.fragment) == ("https", "agents.internal:8443", "")
    assert [unquote(part) for part in made.path.split("/")] == ["", "run", agent, version, "answer"]
    assert made.query.count("&") == 0
    assert unquote(made.query) == f"by={version}"


def test_what_a_request_says_is_not_read_as_a_place() -> None:
    assert address("http://h/{agent_id}/{agent_version}", "{agent_version}", "v1") == "http://h/%7Bagent_version%7D/v1"


def test_a_name_that_has_no_place_may_be_anything() -> None:
    assert address("http://h/{agent_id}", "a", "..") == "http://h/a"


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        address("http://h/{agent_id}", "\ud800", "v1")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://h/a", "http:// or https://"),
        ("h:80/a", "http:// or https://"),
        ("http:///a", "names a host"),
        ("http://h:70000/a", "names a host"),
        ("http://{agent_id}.internal/a", "lets a request choose the host"),
        ("http://h:{agent_version}/a", "http:// or https://"),
        ("http://user:secret@h/a", "RAMPGATE_CANDIDATE_KEY"),
        ("http://h/{version}", "has a place {version}"),
        ("http://h/{agent_id", "a brace without its other half"),
        ("http://h/{{agent_id}}", "a brace without its other half"),
        ("http://h/a#b", "a fragment"),
        ("http://h/a b", "percent-encoded"),
        ("http://h/a\n", "percent-encoded"),
        ("", "at least 1 character"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(url: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        CandidateEndpoint.model_validate({"url": url})


def test_an_address_may_name_no_version_at_all() -> None:
    assert CandidateEndpoint.model_validate({"url": "http://[::1]:80/a"}).url == "http://[::1]:80/a"


@pytest.mark.parametrize(
    "version", ["v1", "../../admin", "a%2Fb", "%2e%2e", "x?y=1&z#f", "v 1", "é", "a\\b", "@evil", "..;"]
)
async def test_no_client_reads_an_encoded_name_as_a_part_of_the_path(version: str) -> None:
    with candidate() as fake:
        client = HttpClient(4, 5.0)
        url = address(f"{fake.url}/{{agent_version}}/end?by={{agent_version}}", "a", version)
        answer = await CandidateClient(client, url).answer({"input": "hi"})
        await client.aclose()
    assert answer == {"output": "so: hi #quality:1"}
    path, _, query = fake.paths[0].partition("?")
    assert [unquote(part) for part in path.split("/")] == ["", "answer", version, "end"]
    assert parse_qs(query, keep_blank_values=True) == {"by": [version]}
