"""The public Python API: open a warehouse, ask for kappa_crit. The computing code is in pipelines and warehouse.

>>> import kappa
>>> with kappa.open(sample_home) as warehouse:
...     turns = warehouse.turns(workload="sharegpt", tokenizer="qwen3", counting="text")
...     turns.columns[:7]
['workload', 'tokenizer', 'counting', 'reuse', 'session_id', 'turn_index', 'cached_tokens']
"""

from __future__ import annotations

from kappa.asking import cache, crit
from kappa.profiling import profile
from kappa.serving import serve_sim
from kappa.warehouse import Warehouse, open_warehouse
from pipelines.capacity.machines.question import CacheQuestion, Tier
from pipelines.exporting.question import ExportQuestion
from pipelines.hardware.questions.question import CritQuestion
from pipelines.hardware.questions.verdict import Verdict, verdict
from pipelines.serving.answers.question import ServeQuestion
from warehouse.errors import ErrorCode, KappaError, UsageError

open = open_warehouse  # noqa: A001 - users write `kappa.open`; no file is opened in this module

__all__ = [
    "CacheQuestion",
    "CritQuestion",
    "ErrorCode",
    "ExportQuestion",
    "KappaError",
    "ServeQuestion",
    "Tier",
    "UsageError",
    "Verdict",
    "Warehouse",
    "cache",
    "crit",
    "open",
    "profile",
    "serve_sim",
    "verdict",
]
