"""The public Python API: open a warehouse, ask for kappa_crit. The computing code is in pipelines and warehouse.

>>> import kappa
>>> with kappa.open(sample_home) as warehouse:
...     turns = warehouse.turns(workload="sharegpt", tokenizer="qwen3", counting="text")
...     turns.columns[:7]
['workload', 'tokenizer', 'counting', 'reuse', 'session_id', 'turn_index', 'cached_tokens']
"""

from __future__ import annotations

from kappa.asking import crit
from kappa.profiling import profile
from kappa.warehouse import Warehouse, open_warehouse
from pipelines.hardware.questions.question import CritQuestion
from warehouse.errors import ErrorCode, KappaError, UsageError

open = open_warehouse  # noqa: A001 - users write `kappa.open`; no file is opened in this module

__all__ = ["CritQuestion", "ErrorCode", "KappaError", "UsageError", "Warehouse", "crit", "open", "profile"]
