"""The models and platforms of a question, and why none fits it."""

from __future__ import annotations

from pipelines.hardware.entities import SECOND_HAND, KappaCrit, Pair, Platform
from pipelines.hardware.machines import Sources, named
from pipelines.hardware.questions.question import OneQuestion
from pipelines.hardware.ratios import fitting_platforms, kappa_crit_rows
from pipelines.hardware.served import BLOCK_TOKENS, Serving
from warehouse.errors import ErrorCode, KappaError


def chosen_rows(question: OneQuestion, sources: Sources) -> list[KappaCrit]:
    """Return kappa_crit of the chosen models on the chosen platforms.

    Without any choice these are the headline ones; a second-hand row is chosen only if the question names it.

    Raises:
        KappaError: nothing fits the choice.
    """
    models = {row.model for row in sources.headlines if row.model} if question.model is None else {question.model}
    rows = [
        row
        for platform in _platforms(question, sources)
        for row in kappa_crit_rows(
            sources,
            platform,
            bytes_per_s=question.bandwidth_bytes_per_s,
            kv_dtypes=(question.kv_dtype or "bf16",),
            serving=serving_of(question),
        )
        if row.model in models
    ]
    if not rows:
        raise _nothing_fits(question, sources)
    return rows


def serving_of(question: OneQuestion) -> Serving:
    """Return how the models of a question are served."""
    return Serving(
        gpus=question.tensor_parallel,
        weight_dtype=question.weight_dtype,
        compute_dtype=question.compute_dtype,
        batch=question.batch,
        mla_attention=question.mla_attention,
        node_bytes_per_s=question.node_bandwidth_bytes_per_s,
        block_layout=question.block_layout,
        copy_latency_s=question.copy_latency_s,
        block_tokens=question.chunk_tokens if question.chunk_tokens > 1 else BLOCK_TOKENS,
        is_pipelined=question.pipeline,
    )


def _platforms(question: OneQuestion, sources: Sources) -> list[Pair]:
    rate, basis = question.bandwidth_bytes_per_s, question.basis
    # The headline platforms are physical ones, but for the paper's; a workload's verdict asks for that basis.
    is_open = basis is None or (basis == "physical" and question.workload is not None)
    is_free = is_open and not any((question.accelerator, question.link, rate))
    is_free &= question.model is None or question.is_about_turns
    shown = {(row.accelerator, row.link, row.basis) for row in sources.headlines}
    fits = fitting_platforms(sources, question.accelerator, question.link, is_bandwidth_given=rate is not None)
    return [
        p
        for p in fits
        if (not is_free or (p.accelerator, p.link, p.basis) in shown)
        and basis in (None, p.basis)
        and not _is_hidden(question, sources, p)
    ]


def _is_hidden(question: OneQuestion, sources: Sources, platform: Pair) -> bool:
    """Return whether a pair is second-hand and the question does not name its link or second-hand accelerator.

    A platform is second-hand if any of its three rows is; the paper's own inputs are as printed.
    """
    if question.link or platform.basis == "paper":
        return False
    accelerator, link = named(sources.accelerators, platform.accelerator), named(sources.links, platform.link)
    of_pair = platform if isinstance(platform, Platform) else None
    if question.accelerator and accelerator and accelerator.confidence == SECOND_HAND:
        return False
    return any(row.confidence == SECOND_HAND for row in (of_pair, accelerator, link) if row)


def _nothing_fits(question: OneQuestion, sources: Sources) -> KappaError:
    names = [name for name in (question.accelerator, question.link) if name]
    if question.basis == "paper" and question.model and question.model not in sources.paper_models:
        has, what = ", ".join(sources.paper_models), question.model
        return KappaError(
            f"nothing fits {what}", f"the paper has {has} alone", "leave out --basis paper", code=ErrorCode.NOTHING_FITS
        )
    if question.basis == "measured" and not sources.measured and not sources.calibrated:
        return KappaError(
            "nothing fits",
            "nothing was measured here",
            "run `kappa measure` on that machine first, or `kappa calibrate` on its measurements",
            code=ErrorCode.NOT_MEASURED,
        )
    of_basis = [row for row in sources.platforms if row.basis == question.basis]
    there = {name for row in of_basis for name in (row.accelerator, row.link)}
    lacking = [name for name in names if name not in there]
    if question.basis == "paper" and lacking:
        has, what = ", ".join(sorted(there)), " and ".join(lacking)
        return KappaError(
            f"nothing fits {what}", f"the paper has {has} alone", "leave out --basis paper", code=ErrorCode.NOTHING_FITS
        )
    what = " and ".join(names)
    of = f" on the basis {question.basis}" if question.basis else ", or it is known only second-hand"
    unnamed = [] if question.accelerator else ["--accelerator"]
    unnamed += [] if question.link else ["--link, or give --bandwidth,"]
    return KappaError(
        f"nothing fits {what}".rstrip(),
        f"no sourced platform has {what or 'that'}{of}",
        f"name {' and '.join(unnamed)} as well" if unnamed else "leave out --basis",
        code=ErrorCode.NOTHING_FITS,
    )
