"""A sync with each vertical's key to Opik: what a key may not do is told with the setting to change (PC5 FR-7, AC-8,
§5.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from rampgate.local.opik.server import start
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import EVALUATORS, Rig, made

KEY = "the-operators-key"


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik) -> Rig:
    return await made(tmp_path, opik)


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Rig]:
    """An Opik that wants a key."""
    running = await start(api_key=KEY)
    headers = {"Authorization": KEY, "Comet-Workspace": "default"}
    async with httpx.AsyncClient(timeout=20, headers=headers) as http:
        yield await made(tmp_path, ScriptedOpik(running.url, http), KEY)
    await running.close()


async def test_read_only_credentials_are_told_with_vertical_and_setting_and_need_no_right_to_plan(rig: Rig) -> None:
    for method in ("POST", "PATCH"):
        await rig.opik.fault(match={"path": EVALUATORS, "method": method}, status=403)
    assert (await rig.run("rules", "sync", "--dry-run")).code == 0
    ran = await rig.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    told = ran.json["verticals"][0]["error"]
    assert "the key of vertical receipts may read and not write" in told
    assert "RAMPGATE_OPIK_API_KEY" in told
    assert "api_key_file in" in told
    assert await rig.there() == {}


async def test_missing_credentials_are_told_with_vertical_and_setting(guarded: Rig) -> None:
    ran = await guarded.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    told = ran.json["verticals"][0]["error"]
    assert all(word in told for word in ("vertical receipts", "RAMPGATE_OPIK_API_KEY", "api_key_file"))
    assert (await guarded.sync(RAMPGATE_OPIK_API_KEY=KEY)).code == 0


async def test_a_verticals_own_key_is_used_for_its_project(guarded: Rig, tmp_path: Path) -> None:
    file, secret = guarded.configs / "verticals/receipts.yaml", tmp_path / "receipts.key"
    file.write_text(f"{file.read_text()}api_key_file: {secret}\n")
    ran = await guarded.sync("--vertical", "receipts", "--json")
    assert ran.code == 2
    assert "receipts.yaml: api_key_file: can't read" in ran.json["verticals"][0]["error"]
    secret.write_text(KEY + "\n")
    ran = await guarded.sync("--json")
    assert ran.code == 2
    receipts, rewards = ran.json["verticals"]
    assert (len(receipts["written"]), receipts["error"]) == (16, None)
    assert "vertical rewards_assistant" in rewards["error"]
    assert KEY not in ran.out + ran.err
