"""Figures of a run, the largest rate, arrivals, and times on real machines."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from serving_cases import requests, run

from pipelines.hardware.machines import read_sources
from pipelines.hardware.what_if import Setting
from pipelines.serving.answers.answer import ServeAnswer
from pipelines.serving.answers.answering import chosen
from pipelines.serving.answers.goodput import goodput_per_s, interval
from pipelines.serving.answers.question import ServeQuestion, check
from pipelines.serving.answers.summary import jain_index, summary
from pipelines.serving.answers.turns import in_order
from pipelines.serving.answers.words import legend
from pipelines.serving.arrivals.log import read_log
from pipelines.serving.arrivals.times import poisson, stretched
from pipelines.serving.engine.requests import Limits
from pipelines.serving.engine.run import simulate
from pipelines.serving.line.ttft import line
from pipelines.serving.machines.served import capped, served
from pipelines.serving.policies.spec import PolicySpec
from warehouse.errors import ErrorCode, KappaError, UsageError

SOURCES = read_sources()


def setting(model: str = "llama-3.1-70b", gpus: int = 4, cost_model: str = "full") -> Setting:
    """Return a model on H100s over PCIe 5."""
    asked = ServeQuestion(
        model=model, accelerator="h100-sxm", link="pcie5-x16", basis="physical", workload="any",
        tensor_parallel=gpus, cost_model=cost_model,
    )  # fmt: skip
    return next(setting for _, setting in chosen(asked, SOURCES))


def test_a_run_in_figures() -> None:
    """Case 5 in full: TTFT 4 9 6, parts, shares and what limits."""
    rows = [(0, 6, 1, 0, 3), (0, 5, 2, 0, 2), (1, 0, 3)]
    found = summary(requests(rows), np.array([1.0, 2, 3]), Limits(pool_tokens=10), run(rows, pool_tokens=10))
    # of three turns a tenth is none; mean (4 + 9 + 6) / 3
    assert (found.turns, found.rejected_turns, found.ttft_mean_s) == (3, 0, pytest.approx(19 / 3))
    parts = (found.memory_s, found.link_queue_s, found.load_s, found.accelerator_queue_s, found.computing_s)
    # memory 0 4 3, link 0, load 3 2 0, the second waits 1 s once loaded, computing 1 2 3
    assert parts == pytest.approx((7 / 3, 0, 5 / 3, 1 / 3, 2))
    # 9 s: the link loads 5, computing takes 6; memory 7 x 4 + 7 x 5 + 3 x 3 of 10 x 9
    assert found.span_s == 9
    assert (found.link_busy_share, found.compute_busy_share) == pytest.approx((5 / 9, 6 / 9))
    assert found.pool_share == pytest.approx(72 / 90)
    # something waits for memory from 0 to 4 of 9: less than half
    assert found.limit == "none"
    # 20 % of 700 W all the time and the rest for 6 s: 140 x 9 + 560 x 6
    assert found.energy_j(140, 700) == 140 * 9 + 560 * 6


def test_jain_by_hand() -> None:
    """(1 + 1 + 0.5 + 0.25)^2 / (4 (1 + 1 + 0.25 + 0.0625)) = 7.5625 / 9.25."""
    assert jain_index(np.array([1, 1, 0.5, 0.25])) == pytest.approx(7.5625 / 9.25)
    # Equal shares round to more than 1 for 11 of these 300 numbers of turns.
    assert max(jain_index(np.full(n, 0.1)) for n in range(1, 301)) == 1


def test_goodput_of_mm1() -> None:
    """TTFT of M/M/1 is exponential with rate mu - lambda: p90 = ln(10) / (1 - lambda) <= 10 s gives 1 - ln(10) / 10."""
    closed = 1 - math.log(10) / 10
    found = goodput_per_s(lambda rate: math.log(10) / (1 - rate) if rate < 1 else math.inf, 10.0, 0.5)
    assert found == pytest.approx(closed, rel=0.01)
    assert goodput_per_s(lambda _rate: 11.0, 10.0, 0.5) is None
    assert goodput_per_s(lambda _rate: 9.0, 10.0, 0.5) == math.inf
    service = np.random.default_rng(0).exponential(1, 200_000)

    def p90(rate: float) -> float:
        return float(np.quantile(line(poisson(len(service), rate, 1), service * 0, service).ttft_s, 0.9))

    assert goodput_per_s(p90, 10.0, 0.5) == pytest.approx(closed, rel=0.03)


def test_intervals_over_seeds() -> None:
    """Mean 2, s = 1, t(0.995, 2) = 9.925: 2 -+ 9.925 / sqrt(3)."""
    found = interval([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert (found.low, found.high) == pytest.approx((2 - 5.730, 2 + 5.730), abs=1e-3)
    assert interval([1.0]).low is None


def test_arrivals() -> None:
    """The same seed draws the same gaps at any rate; a log is stretched to (n - 1) / span."""
    np.testing.assert_allclose(poisson(100, 2.0, 7) * 2, poisson(100, 1.0, 7))
    assert not np.array_equal(poisson(100, 2.0, 7), poisson(100, 2.0, 8))
    assert np.diff(poisson(50_000, 2.0)).mean() == pytest.approx(0.5, rel=0.02)
    # span 4 s, 3 requests: rate 0.5; at 2 a second it is four times as fast
    assert stretched(np.array([10.0, 11, 14]), 2.0).tolist() == [0, 0.25, 1]
    with pytest.raises(KappaError) as refused:
        stretched(np.array([3.0, 3.0]), 2.0)
    assert refused.value.code == ErrorCode.NOTHING_FITS


def test_a_log_file(tmp_path: Path) -> None:
    """Azure's TIMESTAMP with seven digits; seconds; milliseconds; what is no log."""
    log = tmp_path / "log.csv"
    log.write_text("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46.6805900,1\n2023-11-16 18:15:47.1805900,2\n")
    assert np.diff(read_log(log)).tolist() == pytest.approx([0.5])
    log.write_text("time\n1700000000500\n1700000000000\n")
    assert read_log(log).tolist() == pytest.approx([1.7e9, 1.7e9 + 0.5])
    for text in ("when\n1\n", "time\nsoon\n", "time\nnan\n", "time\n"):
        log.write_text(text)
        with pytest.raises(KappaError) as refused:
            read_log(log)
        assert refused.value.code == ErrorCode.BAD_FILE


def test_turns_are_interleaved_and_rounded() -> None:
    """Two sessions at a time, A0 B0 A1; K 20 in blocks of 16 recomputes 4."""
    found = in_order(np.array([0, 0, 1]), np.array([0, 20, 0]), np.array([5, 6, 7]), np.array([1, 2, 3]), 2, 16)
    assert found.session.tolist() == [0, 1, 0]
    assert found.cached_tokens.tolist() == [0, 0, 16]
    assert found.new_tokens.tolist() == [5, 7, 10]
    assert in_order(*[np.arange(3)] * 4, 1, most=2).session.tolist() == [0, 1]


@pytest.mark.parametrize("model", ["llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3"])
def test_alone_a_turn_takes_x_and_c(model: str) -> None:
    """At rate 0 TTFT is x + c, for dense models, mixtures and latents; in chunks it is longer by reads of weights."""
    cached, new = np.array([0, 1000, 50_000]), np.array([3000, 16, 500])
    times = served(setting(model, 8), cached, new)
    asked = replace(requests([(0, 1, 1)] * 3), arrival_s=np.arange(3) * 1e6, cached_tokens=cached, new_tokens=new)
    asked = replace(asked, load_s=times.load_s, output_tokens=np.zeros(3, dtype=np.int64))
    found = simulate(asked, times.work, Limits(), PolicySpec())
    np.testing.assert_allclose(found.ttft_s, times.load_s + times.compute_s, rtol=1e-6)
    chunks = simulate(asked, times.work, Limits(token_budget=256), PolicySpec())
    assert (chunks.ttft_s >= found.ttft_s * (1 - 1e-9)).all()


def test_decoding_in_one_go_is_decoding_by_iteration() -> None:
    """FLOP and reads of many iterations are those of each: contexts grow by one a token."""
    work = served(setting(), np.array([5]), np.array([5])).work
    flop, read = work.decode_s([100, 200], 3)
    for step in range(3):
        one, of_one = work.decode_s([100 + step, 200 + step], 1)
        assert flop[step] == pytest.approx(one[0])
        assert read[step] == pytest.approx(of_one[0])
    # the keys and values of 300 tokens, and 302 an iteration later
    assert read[1] / read[0] == pytest.approx(302 / 300)


def test_a_power_cap_slows_computing_alone() -> None:
    """700 W, idle 140: at 210 W (70 / 560)^(1/3) = 0.5 of the rate; x stays."""
    h100 = SOURCES.accelerators["h100-sxm"]
    cached, new = np.array([1000]), np.array([8000])
    free, slow = (served(s, cached, new) for s in (setting(), capped(setting(), 210.0, h100)))
    assert slow.load_s.tolist() == free.load_s.tolist()
    # what GPUs say to each other is not slowed
    assert 1.5 * free.compute_s[0] < slow.compute_s[0] <= 2 * free.compute_s[0] * (1 + 1e-9)
    with pytest.raises(KappaError) as refused:
        capped(setting(), 100.0, h100)
    assert refused.value.code == ErrorCode.USAGE


@pytest.mark.parametrize(
    "wrong",
    [
        {"workload": None}, {"rates_per_s": (0.0,)}, {"rates_per_s": (-1.0,)}, {"rates_per_s": (math.nan,)},
        {"rates_per_s": (1e-308,)}, {"rates_per_s": (1e308,)}, {"rates_per_s": (math.inf,)},
        {"token_budget": 0}, {"max_seqs": 0}, {"pool_tokens": 0}, {"sessions": 0}, {"seeds": 0}, {"turns": -1},
        {"policies": ("lifo",)}, {"arrivals": "closed:0"}, {"arrivals": "closed"}, {"arrivals": "log:"},
        {"arrivals": "often"}, {"decode": "hold"}, {"decode": "hold:x"}, {"decode": "hold:-1"}, {"decode": "all"},
        {"slo_s": 0.0}, {"cap_w": -5.0}, {"use": 0.0}, {"use": 1.5}, {"policies": ("johnson",)},
        {"engine": "line", "policies": ("fill",)}, {"arrivals": "closed:2", "rates_per_s": (1.0,)},
        {"arrivals": "closed:2", "engine": "line"}, {"prices": ("h100-sxm=2",)}, {"is_fleet": True, "cap_w": 300.0},
    ],
)  # fmt: skip
def test_questions_that_cannot_be_meant(wrong: dict[str, object]) -> None:
    """Each is a usage error."""
    with pytest.raises(UsageError) as refused:
        check(ServeQuestion(**{"workload": "finqa", **wrong}))
    assert refused.value.code == ErrorCode.USAGE


def test_several_machines_in_one_question() -> None:
    """Each combination of models, accelerators and numbers of GPUs is a machine; an empty sequence is refused."""
    asked = ServeQuestion(
        model=("llama-3.1-8b", "qwen3-8b"), accelerator=("h100-sxm", "h200-sxm"), link="pcie5-x16", basis="physical",
        workload="any", tensor_parallel=(1, 2),
    )  # fmt: skip
    found = [(row.model, row.accelerator, one.machine.tensor_parallel) for row, one in chosen(asked, SOURCES)]
    models, machines = ("llama-3.1-8b", "qwen3-8b"), ("h100-sxm", "h200-sxm")
    assert set(found) == {(model, machine, gpus) for model in models for machine in machines for gpus in (1, 2)}
    assert len(found) == 8
    with pytest.raises(UsageError):
        [*chosen(replace(asked, link=()), SOURCES)]
    with pytest.raises(UsageError):
        [*chosen(replace(asked, tensor_parallel=(1, 0)), SOURCES)]


def test_the_sentence_names_the_best_and_the_last() -> None:
    """By the knee; one machine alone is not compared."""
    rows = [answer(link="pcie5-x16", knee_per_s=5.0), answer(link="nvlink-c2c", knee_per_s=20.0, tensor_parallel=2)]
    lines = legend(ServeQuestion(workload="w"), rows)
    said = "Most turns a second before p90 TTFT doubles: m on 2 x a over nvlink-c2c, fifo, 20; least m on a over pcie5"
    assert sum(line.startswith(said) for line in lines) == 1
    assert "cost model full, 1 to 2 GPUs, pool 100 tokens" in lines[1]
    assert not any("doubles:" in line for line in legend(ServeQuestion(workload="w"), rows[:1]))


def answer(**changed: object) -> ServeAnswer:
    """Return an answer with some fields changed."""
    numbers = {field.name: 1 for field in fields(ServeAnswer)}
    words = {
        "workload": "w", "tokenizer": "t", "counting": "text", "reuse": "history", "model": "m", "accelerator": "a",
        "link": "l", "cost_model": "full", "policy": "fifo", "rejected_turns": 0, "pool_tokens": 100,
        "is_sample": False, "gpu_token_share": None, "link_token_share": None,
    }  # fmt: skip
    return ServeAnswer(**{**numbers, **words, **changed})  # type: ignore[arg-type]
