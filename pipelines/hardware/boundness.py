"""The share of a workload that waits for the link, for every model and platform, from one sorted pass over its turns.

Under `2n` one sort of the turns by kappa_ratio gives the shares for every kappa_crit. Cost models that depend on K
and T beyond their ratio are in `turn_costs`, for the headline models and platforms only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.hardware.entities import (
    SECOND_HAND,
    Accelerator,
    Calibrated,
    FittedNumber,
    Headline,
    Link,
    Measured,
    Model,
    Pair,
    typed,
)
from pipelines.hardware.machines import Sources, by_name
from pipelines.hardware.served import DEFAULT, Served, serve
from pipelines.hardware.turn_costs import PERCENTILES, PLATFORM, Platform, order_turns, turn_cost_rows
from warehouse.declared.fields import BLOCK_TOKENS, LOGGED
from warehouse.declared.tables import BOUNDNESS
from warehouse.formulas import kappa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Turns: TypeAlias = "pa.RecordBatch | pa.Table | Mapping[str, Ints]"


@dataclass(frozen=True, slots=True)
class SortedTurns:
    """The turns of one workload at one block size, by rising kappa_ratio.

    Attributes:
        kappa_ratio: K / T of each turn, shape (turns,), ascending.
        cached_from: Tokens K of the turns from position i on, shape (turns + 1,).
        prefill_from: Tokens T of the turns from position i on, shape (turns + 1,).
    """

    kappa_ratio: Floats
    cached_from: Ints
    prefill_from: Ints


def boundness(  # noqa: PLR0913 - the names of a series, and what it is joined with
    turns: Iterable[Turns],
    *,
    workload: str,
    tokenizer: str,
    counting: str,
    reuse: str,
    hardware: Mapping[str, pa.Table],
    headlines: pa.Table,
) -> pa.Table:
    """Return the table `boundness` of one workload; it has no row where there is no turn.

    There is a `2n` row for each model whose turns `tokenizer` counts and whose kappa_crit is known; counts of a log
    stand in for those of every headline model. Its block_tokens
    is 1, and also 16 and 256 where both the model and the platform are headlines; those also have rows of cost models
    `attention` and `full`, on every basis except the paper's, which is 2N by definition. Their kappa_crit is NULL,
    since it differs from turn to turn. A model whose bytes per token are not constant (sliding windows, chunks,
    recurrent states, an indexer) has no kappa_crit: it has these rows and `2n` on the headline platforms, at block 1.

    Args:
        turns: Batches with the int64 columns `cached_tokens` (K) and `prefill_tokens` (T, at least 1), any order.
        workload: Its name; `tokenizer`, `counting` and `reuse` are names too.
        tokenizer: See `workload`.
        counting: See `workload`.
        reuse: See `workload`.
        hardware: The tables of `pipelines.hardware.ratios.hardware_tables`.
        headlines: The table of `warehouse.hardware_rows.rows.load_reference("headlines")`.
    """
    cached, prefill = columns_of(turns)
    if not len(cached):
        return BOUNDNESS.rows([])
    chosen_rows = typed(Headline, headlines.to_pylist())
    hardware = {**hardware, "models": _counted_models(hardware["models"], chosen_rows, tokenizer)}
    pairs = _pairs(hardware["kappa_crit"], hardware["models"])
    is_headline = _is_headline(pairs, chosen_rows)
    over_context = _over_context_share(cached + prefill, pairs["max_context_tokens"].to_numpy())
    parts = []
    for block in BLOCK_TOKENS:
        chosen = np.ones(pairs.num_rows, bool) if block == 1 else is_headline
        shares = bound_shares(sort_turns(cached, prefill, block), pairs["kappa_crit"].to_numpy()[chosen])
        shares["over_context_turn_share"] = over_context[chosen]
        names = {"workload": workload, "tokenizer": tokenizer, "counting": counting, "reuse": reuse, "cost_model": "2n"}
        parts.append(_part(pairs.filter(pa.array(chosen)), shares, names, block))
    names = {"workload": workload, "tokenizer": tokenizer, "counting": counting, "reuse": reuse}
    rows = _turn_cost_rows(cached, prefill, _headline_machines(hardware, chosen_rows))
    return pa.concat_tables([*parts, BOUNDNESS.rows([names | row for row in rows])])


def sort_turns(cached_tokens: Ints, prefill_tokens: Ints, block: int = 1) -> SortedTurns:
    """Return the turns by rising kappa_ratio after K is rounded down to whole blocks.

    Args:
        cached_tokens: K, shape (turns,).
        prefill_tokens: T, shape (turns,), at least 1 each.
        block: Tokens in a block.
    """
    reused, computed = kappa.block_tokens(cached_tokens, prefill_tokens, block)
    ratio = reused / computed
    order = np.argsort(ratio, kind="stable")
    return SortedTurns(ratio[order], _sums_from(reused[order]), _sums_from(computed[order]))


def bound_shares(turns: SortedTurns, kappa_crit: Floats) -> dict[str, Floats]:
    """Return the columns of `boundness` that depend on kappa_crit, each of the shape of `kappa_crit`.

    A turn is memory bound where kappa_ratio > kappa_crit, strictly, in float64 as in the SQL over `turns`.
    In units of the time of one computed token, a turn takes K / kappa_crit for the transfer and T for the computation;
    the code multiplies both by kappa_crit. Sums of tokens are exact integers.

    Args:
        turns: At least one turn.
        kappa_crit: Values above zero.
    """
    first = np.searchsorted(turns.kappa_ratio, kappa_crit, side="right")
    cached, prefill = turns.cached_from, turns.prefill_from
    total_time = cached[0] + kappa_crit * prefill[0]
    shares = {
        "memory_bound_turn_share": (len(turns.kappa_ratio) - first) / len(turns.kappa_ratio),
        "memory_bound_token_share": (cached[first] + prefill[first]) / (cached[0] + prefill[0]),
        "memory_bound_time_share": (cached[first] + kappa_crit * prefill[first]) / total_time,
        "transfer_time_share": cached[0] / total_time,
    }
    quantiles = np.quantile(turns.kappa_ratio, list(PERCENTILES.values()))
    for name, quantile in zip(PERCENTILES, quantiles, strict=True):
        shares[name] = quantile / kappa_crit
    return shares


def columns_of(turns: Iterable[Turns]) -> tuple[Ints, Ints]:
    """Return K and T of all batches, each of shape (turns,)."""
    cached, prefill = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for batch in turns:
        cached.append(np.asarray(batch["cached_tokens"], np.int64))
        prefill.append(np.asarray(batch["prefill_tokens"], np.int64))
    return np.concatenate(cached), np.concatenate(prefill)


def _sums_from(values: Ints) -> Ints:
    return np.append(np.cumsum(values[::-1])[::-1], 0)


def _over_context_share(context_tokens: Ints, max_context_tokens: Ints) -> Floats:
    within = np.searchsorted(np.sort(context_tokens), max_context_tokens, side="right")
    return (len(context_tokens) - within) / len(context_tokens)


def _counted_models(models: pa.Table, headlines: list[Headline], tokenizer: str) -> pa.Table:
    """Return the models that a tokenizer counts; of a log, whose model is not known, the headline ones as proxies."""
    if tokenizer != LOGGED:
        return models.filter(pc.equal(models["tokenizer"], pa.scalar(tokenizer)))
    chosen = models.filter(pc.is_in(models["model"], pa.array([row.model for row in headlines if row.model])))
    place = chosen.schema.get_field_index("is_tokenizer_proxy")
    return chosen.set_column(place, chosen.schema.field(place), pa.array([True] * chosen.num_rows))


def _pairs(kappa_crit: pa.Table, counted: pa.Table) -> pa.Table:
    known = kappa_crit.filter(pc.is_valid(kappa_crit["kappa_crit"]))
    known = known.filter(pc.is_in(known["model"], counted["model"].combine_chunks()))
    places = pc.index_in(known["model"], counted["model"].combine_chunks())
    for name in ("max_context_tokens", "is_tokenizer_proxy"):
        known = known.append_column(name, counted[name].take(places))
    return known


def _is_headline(pairs: pa.Table, headlines: list[Headline]) -> npt.NDArray[np.bool_]:
    models = {row.model for row in headlines if row.model}
    platforms = {(row.accelerator, row.link, row.basis) for row in headlines if row.accelerator}
    columns = (pairs[name].to_pylist() for name in ("model", *PLATFORM))
    is_both = [model in models and tuple(platform) in platforms for model, *platform in zip(*columns, strict=True)]
    return np.array(is_both, bool)


def _headline_machines(
    hardware: Mapping[str, pa.Table], headlines: list[Headline]
) -> list[tuple[Model, dict[Platform, Served], bool]]:
    """Return models with their machine on each headline platform, and whether each is a headline.

    They are the headline models, and those without kappa_crit that are known first-hand.
    """
    models = by_name(typed(Model, hardware["models"].to_pylist()))
    sources = Sources(
        models,
        by_name(typed(Accelerator, hardware["accelerators"].to_pylist())),
        by_name(typed(Link, hardware["links"].to_pylist())),
        typed(Measured, hardware["measured"].to_pylist()),
        fitted_numbers=typed(FittedNumber, hardware["fitted_numbers"].to_pylist()),
        calibrated=typed(Calibrated, hardware["calibrated"].to_pylist()),
    )
    shown = dict.fromkeys(row.model for row in headlines if row.model)
    varying = (name for name, row in models.items() if row.kv_bytes_per_token is None and row.confidence != SECOND_HAND)
    chosen = [models[name] for name in dict.fromkeys([*shown, *varying]) if name in models]
    pairs = [
        Pair(row.accelerator, row.link, row.basis)
        for row in headlines
        if row.accelerator and row.link and row.basis and row.basis != "paper"
    ]
    return [
        (
            model,
            {(p.accelerator, p.link, p.basis): serve(sources, p, model, DEFAULT) for p in pairs},
            model.model in shown,
        )
        for model in chosen
    ]


def _turn_cost_rows(
    cached: Ints, prefill: Ints, machines: list[tuple[Model, dict[Platform, Served], bool]]
) -> Iterator[dict[str, object]]:
    context = np.sort(cached + prefill)
    for block in BLOCK_TOKENS:
        turns = order_turns(cached, prefill, block)
        for model, of_platform, is_headline in machines:
            if block != 1 and not is_headline:
                continue
            over = len(context) - int(np.searchsorted(context, model.max_context_tokens, side="right"))
            names = {"block_tokens": block, "over_context_turn_share": over / len(context)}
            names["is_tokenizer_proxy"] = model.is_tokenizer_proxy
            machines_of = {platform: served.machine for platform, served in of_platform.items()}
            for row in turn_cost_rows(turns, model, machines_of):
                served = of_platform[str(row["accelerator"]), str(row["link"]), str(row["basis"])]
                yield names | row | _formats(served)


def _formats(served: Served) -> dict[str, object]:
    return {
        "tensor_parallel": served.gpus,
        "weight_dtype": served.weight_dtype,
        "compute_dtype": served.compute_dtype,
    }


def _part(pairs: pa.Table, shares: Mapping[str, Floats], names: Mapping[str, str], block: int) -> pa.Table:
    rows = pairs.num_rows
    columns: dict[str, Any] = {name: pairs[name] for name in pairs.column_names if name in BOUNDNESS.names}
    # The turns' own tokenizer, which is not that of the model where a log has the counts.
    columns |= {name: pa.array([value] * rows, pa.string()) for name, value in names.items()}
    columns |= {name: pa.array(values) for name, values in shares.items()}
    columns["block_tokens"] = pa.array([block] * rows, pa.int32())
    return BOUNDNESS.conform(pa.table(columns))
