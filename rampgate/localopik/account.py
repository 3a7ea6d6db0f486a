"""Health, version, access, workspace: what a client asks before its first real request."""

from __future__ import annotations

from aiohttp import web

from rampgate.localopik.identity import WORKSPACE
from rampgate.localopik.wire import Routes, answer, done

# The SDK compares this with the first version that takes parallel dataset uploads (2.2.8), so it has to be a version.
VERSION = "2.2.122-rampgate-local-stand-in"
LABEL = "Rampgate's local Opik: a stand-in for development and tests, not the Opik product"
_OFF = (
    *("pythonEvaluatorEnabled", "traceThreadPythonEvaluatorEnabled", "spanLlmAsJudgeEnabled", "guardrailsEnabled"),
    *("spanUserDefinedMetricPythonEnabled", "opikAIEnabled", "alertsEnabled", "welcomeWizardEnabled"),
    *("csvUploadEnabled", "exportEnabled", "optimizationStudioEnabled", "datasetExportEnabled"),
    *("openaiProviderEnabled", "anthropicProviderEnabled", "geminiProviderEnabled", "openrouterProviderEnabled"),
    *("vertexaiProviderEnabled", "bedrockProviderEnabled", "customllmProviderEnabled", "ollamaProviderEnabled"),
    "collaboratorsTabEnabled",
)


async def ping(request: web.Request) -> web.Response:
    return answer({"message": "Healthy Server", "healthy": True})


async def version(request: web.Request) -> web.Response:
    return answer({"version": VERSION, "stand_in": LABEL})


async def access(request: web.Request) -> web.Response:
    """Reached only with access: the doorman has looked before."""
    return done()


async def workspace(request: web.Request) -> web.Response:
    return answer({"workspace_name": WORKSPACE, "use_default_workspace_name": True})


async def configuration(request: web.Request) -> web.Response:
    return answer({})


async def toggles(request: web.Request) -> web.Response:
    off = dict.fromkeys(_OFF, False)
    return answer(off | {"datasetVersioningEnabled": True, "forceWorkspaceVersion": "", "v2WorkspaceAllowlistIds": []})


async def nothing(request: web.Request) -> web.Response:
    """An empty page."""
    return answer({"page": 1, "size": 0, "total": 0, "content": []})


ROUTES: Routes = [
    ("GET", "/is-alive/ping", ping),
    ("GET", "/is-alive/ver", version),
    ("GET", "/v1/private/auth", access),
    ("POST", "/v1/private/auth", access),
    ("GET", "/v1/private/auth/workspace", workspace),
    ("GET", "/v1/private/workspaces/configurations", configuration),
    ("GET", "/v1/private/toggles", toggles),
    ("GET", "/v1/private/environments", nothing),
    ("GET", "/v1/private/feedback-definitions", nothing),
]
