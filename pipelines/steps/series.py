"""The series of a warehouse: the turns, by workload, tokenizer, counting and reuse, made from what is staged."""

from __future__ import annotations

import logging
from functools import cache

from pipelines.steps.distrust import is_distrusted
from pipelines.steps.fetching import own_tokenizers
from pipelines.steps.inputs import conversations_inputs, counts_inputs, logged_inputs, prefix_inputs, turns_inputs
from pipelines.steps.product_names import conversations_name, home_of, tokenizer_name, turns_name
from pipelines.workloads.known import known_workloads
from warehouse.declared.fields import LOGGED, PREFIX
from warehouse.declared.turn_tables import SERIES
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")


def series(staging: Staging) -> list[Product]:
    """Return the turns of every workload, tokenizer, counting and reuse that this code made from what is staged now.

    Others are left out with a log line: one warehouse never mixes two revisions of a set, nor two ways to derive.
    """
    known = known_workloads(home_of(staging))
    products = [staging.newest(product) for name in known for product in staging.names(f"turns/{name}")]
    # A product under another name than its series' is of a kappa that knew fewer names.
    named = [product for product in products if product is not None and product.name == _name_of(product)]
    found = [(product, is_current(staging, product)) for product in named]
    for product, is_ours in found:
        if not is_ours:
            _warn_once(product.name, product.identity)
    return [product for product, is_ours in found if is_ours]


def _name_of(turns: Product) -> str | None:
    series = [turns.meta[name] for name in SERIES if name in turns.meta]
    return turns_name(*series) if len(series) == len(SERIES) else None


def some(parts: list[Product]) -> list[Product]:
    """Return the series; KappaError where there are none."""
    if not parts:
        raise KappaError(
            "there are no turns yet",
            "no workload was counted here",
            "materialize a workload, or run `kappa run`",
            code=ErrorCode.NOT_BUILT,
        )
    return parts


@cache
def _warn_once(name: str, identity: str) -> None:
    del identity
    LOG.warning("%s is left out: older data or older code made it; `kappa run` renews it", name)


def is_current(staging: Staging, turns: Product) -> bool:
    """Whether this code made these turns, from the conversations and by the tokenizer that are staged now."""
    workload, tokenizer, counting, reuse = (turns.meta[name] for name in SERIES)
    conversations = staging.newest(conversations_name(workload))
    if conversations is None:
        return False
    read = identity_of(**conversations_inputs(conversations.meta["raw"]))
    if counting == LOGGED:
        return (conversations.identity, turns.identity) == (read, identity_of(**logged_inputs(read, reuse)))
    file = staging.newest(tokenizer_name(tokenizer))
    if file is None:
        return False
    fingerprint = file.meta["fingerprint"]
    distrusted = is_distrusted(staging, tokenizer, fingerprint)
    counts = identity_of(**counts_inputs(read, fingerprint, distrusted=distrusted))
    kind, own = conversations.meta["raw"].get("kind", ""), own_tokenizers(staging)
    made = identity_of(**turns_inputs(counts, kind, tokenizer, counting, own))
    if reuse == PREFIX:
        made = identity_of(**prefix_inputs(made))
    return (conversations.identity, turns.identity) == (read, made)
