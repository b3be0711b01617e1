"""Closed forms of queues, memory, power and routing, one pure function each; each is also an SQL macro of that name.

A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

import math

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import greatest, least


@formula("rate_per_s::DOUBLE * service_s")
def utilisation(rate_per_s: float, service_s: float) -> float:
    """Return rho of a station, dimensionless: arrivals a second x mean service; from 1 on its queue only grows.

    Source: Little's law for the place of service.

    >>> utilisation(0.7, 1.0)
    0.7
    """
    return rate_per_s * service_s


@formula(
    "CASE WHEN rate_per_s::DOUBLE * service_s < 1 THEN rate_per_s::DOUBLE * square_s2 / (2 * (1 - rate_per_s::DOUBLE * "
    "service_s)) ELSE 'inf'::DOUBLE END"
)
def mean_wait_s(rate_per_s: float, service_s: float, square_s2: float) -> float:
    """Return the mean wait before one station in seconds: lambda E[S^2] / (2 (1 - rho)); infinite from rho = 1.

    Arrivals are Poisson. With constant service E[S^2] = S^2, with exponential service 2 S^2.
    Source: the Pollaczek-Khinchine formula, L. Kleinrock, Queueing Systems 1, section 5.7.

    >>> round(mean_wait_s(0.7, 1.0, 1.5), 12), mean_wait_s(2, 1, 1)
    (1.75, inf)
    """
    rho = rate_per_s * service_s
    return rate_per_s * square_s2 / (2 * (1 - rho)) if rho < 1 else math.inf


@formula("1 / greatest(load_s::DOUBLE, compute_s)")
def async_turns_per_s(load_s: float, compute_s: float) -> float:
    """Return the most requests a second where loads go beside computing: 1 / max(mean x, mean c).

    Source: derivation: each of two stations is busy for its mean time a turn.

    >>> async_turns_per_s(0.5, 0.25)
    2.0
    """
    longest: float = greatest(load_s, compute_s)
    return 1 / longest


@formula("1 / (load_s::DOUBLE + compute_s)")
def blocking_turns_per_s(load_s: float, compute_s: float) -> float:
    """Return the most requests a second where the accelerator waits for each load: 1 / (mean x + mean c).

    Turns of one iteration that share reads of the weights are not counted in it.
    Source: derivation: one station is busy for x + c a turn.

    >>> blocking_turns_per_s(0.5, 0.5)
    1.0
    """
    return 1 / (load_s + compute_s)


@formula("floor((memory_share::DOUBLE * hbm_bytes - weights_bytes) / kv_bytes_per_token)")
def pool_tokens(hbm_bytes: float, weights_bytes: float, kv_bytes_per_token: float, memory_share: float) -> float:
    """Return the tokens that the rest of a GPU's memory holds: floor((share x HBM - weights) / bytes a token).

    Below 0 where the weights do not fit.
    Source: derivation; the share is vLLM's gpu_memory_utilization, 0.9 by default.

    >>> pool_tokens(80e9, 16e9, 131072, 0.9)
    427246.0
    """
    return float(math.floor((memory_share * hbm_bytes - weights_bytes) / kv_bytes_per_token))


@formula("least(pow(greatest(cap_w::DOUBLE - standby_w, 0) / (tdp_w - standby_w), 1.0::DOUBLE / 3), 1)")
def capped_compute_share(cap_w: float, standby_w: float, tdp_w: float) -> float:
    """Return the share, 0 to 1, of the compute rate under a power cap: min(1, ((W - idle) / (TDP - idle))^(1/3)).

    Source: assumption: dynamic power grows with the cube of the clock (frequency times squared voltage).

    >>> capped_compute_share(240, 140, 940), capped_compute_share(940, 140, 700)
    (0.5, 1.0)
    """
    share: float = least((greatest(cap_w - standby_w, 0) / (tdp_w - standby_w)) ** (1.0 / 3), 1.0)
    return share


@formula("idle_w::DOUBLE * span_s + (busy_w::DOUBLE - idle_w) * computing_s")
def run_energy_j(idle_w: float, busy_w: float, span_s: float, computing_s: float) -> float:
    """Return the energy of a run of one GPU in joules: idle power all the time, the rest while it computes.

    Source: derivation: power times time.

    >>> run_energy_j(140.0, 700.0, 10.0, 2.0)
    2520.0
    """
    return idle_w * span_s + (busy_w - idle_w) * computing_s


@formula(
    "(usd_q::DOUBLE * compute_s_q - usd_p::DOUBLE * compute_s_p) / "
    "(usd_p::DOUBLE * load_s_p - usd_q::DOUBLE * load_s_q)"
)
def routing_kappa(  # noqa: PLR0913, PLR0917 - price, load and compute of each of two machines
    usd_p: float, load_s_p: float, compute_s_p: float, usd_q: float, load_s_q: float, compute_s_q: float
) -> float:
    """Return the kappa_ratio, dimensionless, above which a turn is cheaper on q, whose link is faster for its price.

    kappa* = (P_q f / C_q - P_p f / C_p) / (P_p B / X_p - P_q B / X_q): at kappa* both cost the same a turn. P is a
    price an hour, with its shadow price; f / C the seconds to compute one token, B / X those to load one.
    Source: derivation: P_p (K B / X_p + T f / C_p) = P_q (K B / X_q + T f / C_q), solved for K / T.

    >>> routing_kappa(2, 4.0, 1.0, 6, 1.0, 1.0)
    2.0
    """
    return (usd_q * compute_s_q - usd_p * compute_s_p) / (usd_p * load_s_p - usd_q * load_s_q)
