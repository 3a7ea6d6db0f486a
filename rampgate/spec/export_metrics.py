"""Writes the figures of the last run of a spec for Prometheus: `rampgate spec export-metrics`."""

from __future__ import annotations

import sys

from rampgate.command import Context, command
from rampgate.options import StoreOption
from rampgate.spec.chosen import AgentOption, ConfigOption


@command(None, flags="metrics_file")
def export_metrics(
    context: Context, config: ConfigOption = None, agent: AgentOption = None, store: StoreOption = None
) -> int:
    """Write the figures of the last `spec test` in Prometheus' text format. No agent and no model is asked again.

    With --metrics-file they go where a textfile collector reads them, else to stdout. Exit code 2 without such a run.

    Example: rampgate spec export-metrics --agent rag-agent --metrics-file rag.prom
    """
    from rampgate.files import replace_file
    from rampgate.spec.chosen import loaded_spec, opened_spec
    from rampgate.spec.exposition import exposition
    from rampgate.spec.seen import last_seen

    loaded = loaded_spec(config, agent)
    seen = last_seen(opened_spec(loaded, context.settings, store))
    text = exposition(loaded.spec.agent, [one.result for one in seen.outcomes])
    if context.metrics_file is not None:
        replace_file(context.metrics_file, text, "--metrics-file")
    else:
        sys.stdout.write(text)
    return 0
