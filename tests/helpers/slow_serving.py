"""A second engine, written from the definition and not for speed: it looks at everything at every event."""

from __future__ import annotations

from dataclasses import dataclass, field

INF = float("inf")
COSTS = ("token", "iteration", "mixed")


@dataclass
class Seen:
    """One request and all that happened to it."""

    row: int
    cached: int
    new: int
    output: int
    load: float
    group: int = 0
    arrival: float | None = None
    state: str = "away"
    load_end: float = INF
    done: int = 0
    made: int = 0
    tag: float = 0.0
    admitted: float | None = None
    first: float | None = None
    leave: float = INF
    left: float | None = None

    @property
    def held(self) -> int:
        """M."""
        return self.cached + self.new + self.output


@dataclass
class Case:
    """What both engines are asked."""

    rows: list[tuple[float, int, int, int, float, int]]
    pool: int = 100
    budget: int = 8
    max_seqs: int = 1024
    loading: str = "async"
    decode: str = "none"
    hold: float = 0.0
    closed: int | None = None
    policy: str = "fifo"
    age: float | None = None
    limit: tuple[int, float] | None = None
    weights: tuple[float, ...] = ()
    cost: str = "token"
    trace: list[int] = field(default_factory=list)


def seconds(cost: str, pieces: list[tuple[int, int]], decoded: list[int]) -> float:
    """Return the length of an iteration from (done context, tokens) of each piece and contexts of decoding ones."""
    tokens = sum(n for _, n in pieces) + len(decoded)
    if cost == "token":
        return float(tokens)
    if cost == "iteration":
        return 1.0
    # FLOP: a token and a sixteenth of each pair; bytes: 2, half for each touched token, a quarter for each read one.
    flop = tokens + sum(n * p + n * (n + 1) / 2 for p, n in [*pieces, *((p, 1) for p in decoded)]) / 16
    return max(flop, 2 + tokens / 2 + sum(decoded) / 4)


def run(case: Case) -> list[Seen]:  # noqa: C901, PLR0912, PLR0915 - one straight story, to be read beside the page
    """Return what happens to each request of a case."""
    seen = [Seen(i, k, t, o, x, g) for i, (_, k, t, o, x, g) in enumerate(case.rows)]
    if case.closed is None:
        for one, row in zip(seen, case.rows, strict=True):
            one.arrival = row[0]
    waiting: list[Seen] = []
    begun: list[Seen] = []
    loads: list[Seen] = []
    finish: dict[int, float] = {}
    now, v, link = 0.0, 0.0, 0.0

    def come(one: Seen) -> bool:
        nonlocal waiting
        if one.held > case.pool:
            one.state = "reject"
            return False
        one.state = "waiting"
        if case.policy == "fair":
            weight = case.weights[one.group] if one.group < len(case.weights) else 1.0
            one.tag = max(v, finish.get(one.group, 0.0))
            finish[one.group] = one.tag + one.held / weight
        waiting = [*waiting, one]
        return True

    def next_of_loop(at: float) -> None:
        for one in seen:
            if one.state == "away":
                one.arrival = at
                if come(one):
                    return

    for _ in range(case.closed or 0):
        next_of_loop(0.0)
    while True:
        # All that happened until now.
        for one in sorted((s for s in seen if s.leave <= now and s.left is None), key=lambda s: (s.leave, s.row)):
            one.left, one.state = one.leave, "gone"
            if case.closed is not None:
                next_of_loop(one.leave)
        if case.closed is None:
            for one in seen:
                if one.state == "away" and one.arrival <= now:
                    come(one)
        ready = [s for s in loads if s.load_end <= now]
        # Step 1: those begun, in that order, then those loaded since.
        left, pieces, decoded, moved = case.budget, [], [], []
        for one in begun:
            if left > 0 and one.first is None:
                n = min(one.new - one.done, left)
                pieces.append((one.cached + one.done, n))
                moved.append((one, n))
                left -= n
            elif left > 0:
                decoded.append(one.cached + one.new + one.made - 1)
                moved.append((one, 1))
                left -= 1
        for one in ready:
            if left > 0:
                n = min(one.new, left)
                loads.remove(one)
                begun.append(one)
                pieces.append((one.cached, n))
                moved.append((one, n))
                left -= n
        # Step 2: what the policy names.
        wait_for_loads = 0.0
        while left > 0:
            inside = [s for s in seen if s.admitted is not None and s.left is None]
            if len(inside) >= case.max_seqs:
                break
            free = case.pool - sum(s.held for s in inside)
            owed = sum(s.new for s in loads if s not in ready)
            one = named(case, waiting, inside, free, left - owed, now)
            if one is None:
                break
            waiting = [s for s in waiting if s is not one]
            one.admitted, one.state, v = now, "held", one.tag
            if case.loading == "async" and one.load > 0:
                link = max(link, now) + one.load
                one.load_end = link
                loads.append(one)
                continue
            wait_for_loads += one.load
            n = min(one.new, left)
            begun.append(one)
            pieces.append((one.cached, n))
            moved.append((one, n))
            left -= n
        if not moved:
            events = [s.arrival for s in seen if s.state == "away" and case.closed is None]
            events += [s.load_end for s in loads if s not in ready] + [s.leave for s in seen if s.left is None]
            if not [e for e in events if e < INF]:
                return seen
            now = min(events)
            continue
        case.trace.append(case.budget - left)
        now += wait_for_loads + seconds(case.cost, pieces, decoded)
        for one, n in moved:
            if one.first is not None:
                one.made += 1
            else:
                one.done += n
                if one.done == one.new:
                    one.first, one.made = now, 1
        for one in list(begun):
            if one.first is None:
                continue
            if case.decode == "hold":
                one.leave = now + max(one.output - 1, 0) * case.hold
                begun.remove(one)
            elif case.decode == "none" or one.made >= one.output:
                one.leave = now
                begun.remove(one)


def named(  # noqa: PLR0913, PLR0917 - all that a policy may look at
    case: Case, waiting: list[Seen], inside: list[Seen], free: int, room: int, now: float
) -> Seen | None:
    """Return whom the policy names of the 64 oldest that wait."""
    oldest = sorted(waiting, key=lambda s: (s.arrival, s.row))[:64]
    if not oldest:
        return None
    allowed = oldest
    if case.limit is not None:
        most, kappa = case.limit
        if sum(s.cached / s.new > kappa for s in inside) >= most:
            allowed = [s for s in oldest if s.cached / s.new <= kappa]
    first = oldest[0]
    if case.age is not None and now - first.arrival >= case.age:
        return first if first in allowed and first.held <= free else None
    if case.policy == "fill":
        fits = [s for s in allowed if s.held <= free]
        target = free / max(1, room)
        return min(fits, key=lambda s: (abs(s.held / s.new - target), s.row), default=None)
    key = (lambda s: (s.tag, s.row)) if case.policy == "fair" else (lambda s: s.row)
    one = min(allowed, key=key, default=None)
    return one if one is not None and one.held <= free else None
