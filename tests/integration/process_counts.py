"""The graph with other numbers of step processes: `one` at a time, and `three`."""

import dagster as dg

from assets.graph import definitions


def _with(processes: int) -> dg.Definitions:
    executor = dg.multiprocess_executor.configured({"max_concurrent": processes})
    return dg.Definitions(assets=definitions.defs.assets, resources=definitions.defs.resources, executor=executor)


one, three = _with(1), _with(3)
