"""`rampgate traces list` and `show`: live traces as Opik holds them, without what anybody said (PC5 §2)."""

from __future__ import annotations

from typing import Annotated

import typer

from rampgate.options import ConfigsOption, JsonOption, OpikOption

MOST = 500
group = typer.Typer(help="Live traces in Opik, without their texts.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="traces")


@group.callback()
def traces() -> None:
    """Only reads, and shows labels and scores: `turn --purpose eval` shows texts, and is audited."""


@group.command("list")
def list_command(
    agent: Annotated[str | None, typer.Option("--agent", help="Only this metadata.agent_id")] = None,
    version: Annotated[str | None, typer.Option("--version", help="Only this metadata.agent_version")] = None,
    vertical: Annotated[
        str | None,
        typer.Option("--vertical", help="Only this metadata.vertical, in its project; default: all registered"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST, help="The newest so many")] = 20,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Show the newest traces of the registered verticals' projects: turn, agent, version, vertical and scores.

    Each project is read with its vertical's key. Exit code 2 if one can't be read; the others are shown all the same.

    Example: rampgate traces list --agent rewards --version v12 --limit 50
    """
    from rampgate.cli.jobs.state.traces import TracesAsked, list_traces
    from rampgate.settings_sources import load_settings

    settings = load_settings({"configs": configs, "opik": opik})
    raise typer.Exit(list_traces(settings, TracesAsked(agent, version, vertical, limit), as_json))


@group.command("show")
def show_command(
    trace_id: Annotated[str, typer.Argument(help="The trace's id in Opik")],
    vertical: Annotated[
        str | None, typer.Option("--vertical", help="Ask with this vertical's key and workspace")
    ] = None,
    as_json: JsonOption = False,
    opik: OpikOption = None,
    configs: ConfigsOption = None,
) -> None:
    """Show one trace: its turn, agent, version, vertical, user signals, judges' scores and other scores.

    Exit code 1 if Opik shows no trace of this id, 2 if the id is none or Opik can't be read.

    Example: rampgate traces show 01980a4e-6a2b-7c3d-8e4f-5a6b7c8d9e0f --json
    """
    from rampgate.cli.jobs.state.traces import show_trace
    from rampgate.settings_sources import load_settings

    raise typer.Exit(show_trace(load_settings({"configs": configs, "opik": opik}), trace_id, vertical, as_json))
