"""The graph with three step processes at once."""

import dagster as dg

from assets.graph import definitions

three = dg.Definitions(
    assets=definitions.defs.assets,
    resources=definitions.defs.resources,
    executor=dg.multiprocess_executor.configured({"max_concurrent": 3}),
)
