"""Which sourced rows an answer of `kappa crit` rests on: how sure each is, and where each figure comes from."""

from __future__ import annotations

from typing import Any

from pipelines.hardware.machines import GIVEN_LINK, Sources

Row = dict[str, Any]
# How sure a figure is that no sourced row holds: as the paper printed it, as a person gave it, as this machine gave it.
PRINTED, GIVEN, MEASURED, NO_ROW = "printed", "given", "measured", "none"
_ROWS = ("model", "accelerator", "link", "platform", "indexer", "tier")
CONFIDENCES = tuple(f"{name}_confidence" for name in _ROWS)
SOURCES = ("flops_per_token", "kv_bytes_per_token", "index_heads", "flop_per_s", "bytes_per_s", "tier_bytes_per_s")


def origins(sources: Sources, row: Row, *, is_bandwidth_given: bool = False, tier: str | None = None) -> Row:
    """Return the confidence of each row that was used (`..._confidence`) and the source of each figure (`..._source`).

    Confidence is that of the row; `printed` on the paper's basis, `given` for --bandwidth, `measured` for what
    `kappa measure` found, `none` for a pair that is no platform, None for an indexer that the model has not and for a
    tier that was not asked for.

    Args:
        sources: The sourced rows.
        row: A row of kappa_crit.
        is_bandwidth_given: Whether --bandwidth took the place of the link's.
        tier: Name of the link of the tier.
    """
    found = _of_basis(sources, row)
    if is_bandwidth_given:
        found |= {"link_confidence": GIVEN, "bytes_per_s_source": "--bandwidth"}
    names = ("accelerator", "link", "basis")
    platform = next((p for p in sources.rows["platforms"] if all(p[name] == row[name] for name in names)), None)
    of_tier = (sources.named("links", tier) or {}) if tier else {}
    indexer = sources.named("indexers", row["model"]) or {}
    no_platform = None if row["link"] == GIVEN_LINK else NO_ROW
    found |= {
        "platform_confidence": platform["confidence"] if platform else no_platform,
        "indexer_confidence": indexer.get("confidence"),
        "index_heads_source": indexer.get("source"),
        "tier_confidence": of_tier.get("confidence"),
        "tier_bytes_per_s_source": of_tier.get("source"),
    }
    order = (*CONFIDENCES, *(f"{name}_source" for name in SOURCES))
    return {name: found[name] for name in order}


def _of_basis(sources: Sources, row: Row) -> Row:
    model, accelerator = row["model"], row["accelerator"]
    if row["basis"] == "paper":
        paper = {kind: sources.named(f"paper_{kind}s", row[kind]) or {} for kind in ("model", "accelerator", "link")}
        return _found(paper, dict.fromkeys(paper, PRINTED))
    rows = {"model": sources.named("models", model) or {}, "accelerator": {}, "link": {}}
    if row["basis"] == "measured":
        of_it = [r for r in sources.rows["measured"] if r["accelerator"] == accelerator]
        one = next((r for r in of_it if r["link"] == row["link"]), of_it[0])
        rows |= {"accelerator": one, "link": one}
        return _found(rows, {"model": rows["model"]["confidence"], "accelerator": MEASURED, "link": MEASURED})
    rows |= {kind: sources.named(f"{kind}s", row[kind]) or {} for kind in ("accelerator", "link")}
    found = _found(rows, {kind: of.get("confidence") for kind, of in rows.items()})
    whose = "an assumption" if sources.sustained_fraction is None else "--sustained-fraction"
    found["flop_per_s_source"] += f"; dense bf16 peak x {sources.fraction(rows['model'])}, {whose}"
    return found


def _found(rows: dict[str, Row], confidences: dict[str, str | None]) -> Row:
    model, accelerator, link = (rows[kind].get("source") for kind in ("model", "accelerator", "link"))
    return {f"{kind}_confidence": confidence for kind, confidence in confidences.items()} | {
        "flops_per_token_source": model,
        "kv_bytes_per_token_source": model,
        "flop_per_s_source": accelerator,
        "bytes_per_s_source": link,
    }


def pair_notes(row: Row, found: Row) -> list[str]:
    """Return a sentence where accelerator and link are sourced and their pair is not.

    Args:
        row: A row of kappa_crit.
        found: What `origins` says of it.
    """
    if found["platform_confidence"] != NO_ROW:
        return []
    pair = f"{row['accelerator']} with {row['link']}"
    return [f"no physical row of platforms says that {pair} is built: the rows of both are taken as they are"]


def confidence_words(row: Row) -> str:
    """Return the confidences of a row in words.

    >>> confidence_words({"model_confidence": "high", "link_confidence": "secondary", "tier_confidence": None})
    'model high, link secondary'
    """
    pairs = [(name.removesuffix("_confidence"), row.get(name)) for name in CONFIDENCES]
    return ", ".join(f"{kind} {'not sourced' if sure == NO_ROW else sure}" for kind, sure in pairs if sure is not None)


def confidence_cell(row: Row) -> str:
    """Return the confidences of model, accelerator and link for a narrow column.

    >>> confidence_cell({"model_confidence": "high", "accelerator_confidence": "high", "link_confidence": "medium"})
    'high/high/medium'
    """
    return "/".join(str(row[name]) for name in CONFIDENCES[:3])
