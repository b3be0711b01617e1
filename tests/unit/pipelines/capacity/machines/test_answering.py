"""`kappa cache`: what fits on a machine, tiers and their bandwidths, the answer for a log and its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from assets.commands.cache.command import heading, verdict
from pipelines.capacity.curve import curve_of
from pipelines.capacity.distances import hits_of
from pipelines.capacity.machines.answer import CacheAnswer
from pipelines.capacity.machines.answering import cache
from pipelines.capacity.machines.deployment import deployment
from pipelines.capacity.machines.loads import Waits, load
from pipelines.capacity.machines.question import CacheQuestion, Tier, parse_tier
from pipelines.capacity.machines.tier_rows import machines_of, model_on_machine, tier_rows
from pipelines.capacity.tiers import TierTokens
from pipelines.hardware.entities import Pair
from pipelines.hardware.machines import Sources, read_sources
from tests.unit.pipelines.capacity import brute_force as slow
from tests.unit.pipelines.capacity.log_home import LOG, build
from tests.unit.pipelines.capacity.test_tables import drawn
from warehouse.checks.tables import violations
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, KappaError, UsageError

BLOCK_BYTES = 512 * 327_680  # of llama-3.1-70b in bf16


@pytest.fixture(scope="module")
def sources() -> Sources:
    """The sourced rows."""
    return read_sources()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a log of 300 requests."""
    return build(tmp_path_factory.mktemp("log"), drawn())


def test_the_fewest_accelerators(sources: Sources) -> None:
    """llama-3.1-70b in bf16 needs 4 H100: two leave less than 9 % of their memory."""
    placed = deployment(sources.models["llama-3.1-70b"], sources.accelerators["h100-sxm"], "bf16")
    assert placed is not None
    memory = sources.accelerators["h100-sxm"].hbm_bytes
    # 0.9 x memory - 3.5 GB - 141.1 GB / 4 on each
    assert placed.gpus == 4
    assert placed.pool_bytes == 0.9 * memory - 3.5e9 - 70_553_706_496 * 2 / 4
    assert (placed.gpu_token_bytes, placed.host_token_bytes) == (327_680 / 4, 327_680)
    assert placed.host_blocks(10 * BLOCK_BYTES + 1, 512) == 10
    assert deployment(sources.models["llama-3.1-70b"], sources.accelerators["h100-sxm"], "bf16", 1) is not None


def test_a_latent_is_on_every_accelerator(sources: Sources) -> None:
    """DeepSeek-V3's cache of one head is not divided: a token takes as much on each of them."""
    placed = deployment(sources.models["deepseek-v3"], sources.accelerators["h100-sxm"], "bf16")
    assert placed is not None
    assert placed.gpus > 1
    assert placed.gpu_token_bytes == placed.host_token_bytes


def above(kappa_crit: float) -> Waits:
    """Return the turns of which more tokens are loaded than kappa_crit times the computed ones."""
    return lambda loaded, tokens: loaded > kappa_crit * tokens.computed_tokens


def test_turns_wait_as_kappa_crit_says(sources: Sources) -> None:
    """kappa_crit is that of `kappa crit`, V3's on 16 GPUs in fp8 too, and turns beyond it wait; windows too."""
    pair = Pair("h100-sxm", "pcie5-x16", "physical")
    v3 = model_on_machine(sources, sources.models["deepseek-v3"], pair, "bf16")
    assert v3 is not None
    assert v3.setting is not None
    # 2 x 37.55e9 / 70,272 x 54.4e9 / (0.25 x 1,979e12), each of 16 GPUs a sixteenth of the work and all of the latent
    assert (v3.deployment.gpus, v3.kappa_crit) == (16, pytest.approx(7.3448, abs=1e-3))
    tokens = TierTokens(np.array([0, 0]), np.array([[734, 735]]), np.array([100, 100]))
    assert v3.waits(tokens.k_link.astype(float), tokens).tolist() == [False, True]
    gpt = model_on_machine(sources, sources.models["gpt-oss-120b"], pair, "bf16")
    assert gpt is not None
    assert gpt.setting is not None
    # bytes of a model with windows grow with K, so that no single number parts its turns; they wait all the same
    assert gpt.kappa_crit is None
    long = TierTokens(np.array([0, 0]), np.array([[100, 100_000]]), np.array([100, 100]))
    assert gpt.waits(long.k_link.astype(float), long).tolist() == [False, True]


def test_who_waits_for_what() -> None:
    """Turns with kappa_link above, at or below kappa_crit, and those with nothing to load."""
    # [1 2] is new; then found whole: K = 7 - 1 = 6, T = 1, kappa_link 6; [3] is new.
    requests = slow.requests_of([([1, 2], 2), ([1, 2], 2), ([3], 1)])
    hits = hits_of(requests)
    found = load(requests, hits, (0, 9), above(5.9))
    assert (found.link_bound_turn_share, found.compute_bound_turn_share) == (1 / 3, 0)
    assert (found.no_link_turn_share, found.tokens_per_request) == (1 - 1 / 3, 2)
    at_crit = load(requests, hits, (0, 9), above(6.0))
    assert (at_crit.link_bound_turn_share, at_crit.compute_bound_turn_share) == (0, 1 / 3)
    # Twice as slow a tier: 12 > 6.
    assert load(requests, hits, (0, 9), above(6.0), [2.0]).link_bound_turn_share == 1 / 3
    assert load(requests, hits, (9, 0), above(6.0)).no_link_turn_share == 1
    assert load(requests, hits, (0, 9), None).link_bound_turn_share is None


@pytest.mark.parametrize("text", ["dram", "dram=", "=512GB", "dram=512", "dram=512GB@", "dram=-1GB", "dram=512GB@7GB"])
def test_tiers_that_are_none(text: str) -> None:
    """A tier has a name, a size with its unit, and maybe a bandwidth."""
    with refused(ErrorCode.USAGE):
        parse_tier(text)


def asked(sources: Sources, database: Path, *tiers: Tier, **more: object) -> CacheAnswer:
    """Return the answer for llama-3.1-70b on H100."""
    question = CacheQuestion("log", "llama-3.1-70b", "h100-sxm", tiers=tiers, **more)  # type: ignore[arg-type]
    return cache(question, sources, lambda: database)


def test_an_answer_adds_up(sources: Sources, database: Path) -> None:
    """Each row's shares add up to 1, larger caches keep no less, the hit ratio is that of the curve."""
    requests = drawn()
    curve = curve_of(requests, hits_of(requests))
    # One GPU without room: all hits come from DRAM of 10 blocks, then 100 more.
    answer = asked(sources, database, Tier("dram", 10 * BLOCK_BYTES), Tier("nvme", 100 * BLOCK_BYTES, 1e9), gpus=1)
    assert [row.tiers for row in answer.rows] == ["", "1.678 GB of dram", "1.678 GB of dram + 16.78 GB of nvme"]
    for row, blocks in zip(answer.rows, (0, 10, 110), strict=True):
        assert row.capacity_tokens == blocks * 512
        assert row.hit_ratio == pytest.approx(float(curve.hit_ratio(blocks)))
        assert row.gpu_token_share + row.link_token_share + row.computed_token_share == pytest.approx(1)
        assert row.best_hit_ratio >= row.hit_ratio
    assert answer.rows[-1].link_token_share == pytest.approx(answer.rows[-1].hit_ratio)
    assert answer.verdict_row == 2
    assert (answer.reuse, answer.interleaving, answer.is_tokenizer_proxy) == ("prefix", 0, True)


def test_the_rate_of_a_log(sources: Sources, database: Path) -> None:
    """300 requests, one every 10 s: 300 / 2,990 s; a given rate replaces it."""
    answer = asked(sources, database, Tier("dram", 50 * BLOCK_BYTES), gpus=1)
    row = answer.rows[1]
    assert row.link_bytes_per_s == pytest.approx(row.link_bytes_per_request * 300 / 2990)
    given = asked(sources, database, Tier("dram", 50 * BLOCK_BYTES), gpus=1, requests_per_s=2.0).rows[1]
    assert given.link_bytes_per_s == pytest.approx(2 * row.link_bytes_per_request)


def test_a_slow_tier_makes_turns_wait(sources: Sources, database: Path) -> None:
    """At 1 kB/s every turn that loads anything waits for the link; at the links' own rate fewer do."""
    fast = asked(sources, database, Tier("dram", 50 * BLOCK_BYTES), gpus=1).rows[1]
    slowly = asked(sources, database, Tier("dram", 50 * BLOCK_BYTES, 1e3), gpus=1).rows[1]
    assert slowly.link_bound_turn_share == pytest.approx(1 - slowly.no_link_turn_share)
    assert fast.link_bound_turn_share is not None
    assert slowly.link_bound_turn_share is not None
    assert fast.link_bound_turn_share < slowly.link_bound_turn_share


def test_sizes_that_are_sold(sources: Sources, database: Path) -> None:
    """Without a tier: none to 2,048 GB of DRAM, and the words of the answer say what they are about."""
    answer = asked(sources, database)
    assert [row.size_bytes / 1e9 for row in answer.rows] == [0, 128, 256, 512, 1024, 2048]
    assert "4 x h100-sxm" in heading(answer)
    assert verdict(answer).startswith("The accelerators' own memory keeps 100 %")


def test_heads_that_do_not_divide_are_named(sources: Sources, database: Path) -> None:
    """64 query heads and 8 KV heads on 3 GPUs: two notes, as `kappa crit` has them; on 4 there are none."""
    assert asked(sources, database).notes == ()
    uneven = asked(sources, database, gpus=3).notes
    assert [note.startswith("3 GPUs ") for note in uneven] == [True, True]
    assert "64 query heads" in uneven[0]
    assert "8 KV heads" in uneven[1]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"workload": "lag"}, ErrorCode.UNKNOWN_NAME),
        ({"model": "llama-9"}, ErrorCode.UNKNOWN_NAME),
        ({"kv_dtype": "bf17"}, ErrorCode.UNKNOWN_NAME),
        ({"reuse": "history"}, ErrorCode.NOT_BUILT),
        ({"sessions": 0}, ErrorCode.USAGE),
        ({"gpus": 0}, ErrorCode.USAGE),
        ({"gpus": 4097}, ErrorCode.USAGE),
        ({"block_tokens": 0}, ErrorCode.USAGE),
        ({"requests_per_s": 0.0}, ErrorCode.USAGE),
        ({"requests_per_s": 1e308}, ErrorCode.USAGE),
        ({"requests_per_s": float("nan")}, ErrorCode.USAGE),
        ({"tiers": (Tier("dram", 1e9), Tier("dram", 2e9))}, ErrorCode.USAGE),
    ],
)
def test_questions_without_answer(
    sources: Sources, database: Path, changes: dict[str, object], code: ErrorCode
) -> None:
    """Each is refused in one line."""
    given = {"workload": "log", "model": "llama-3.1-70b", "accelerator": "h100-sxm", **changes}
    with pytest.raises((KappaError, UsageError)) as error:
        cache(CacheQuestion(**given), sources, lambda: database)  # type: ignore[arg-type]
    assert error.value.code is code


def test_rows_of_the_headlines(sources: Sources) -> None:
    """Each headline model on each headline platform that has memory, six sizes; tokens add up to those of the log."""
    requests = drawn(40, 5)
    rows = tier_rows(LOG, 0, requests, hits_of(requests), machines_of(sources))
    assert violations(TABLES["cache_tiers"], rows) == []
    sums = [rows[name].to_numpy() for name in ("gpu_tokens_sum", "link_tokens_sum", "computed_tokens_sum")]
    assert set(np.sum(sums, axis=0).tolist()) == {int(requests.context_tokens.sum())}
    assert set(rows["accelerator"].to_pylist()) == {
        "a100-sxm-80gb",
        "h100-sxm",
        "h200-sxm",
        "gh200-96gb",
        "b200-sxm",
        "gb200",
    }
