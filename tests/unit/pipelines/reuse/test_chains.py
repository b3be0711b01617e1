"""Sessions by chain, against a search over all earlier requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.reuse.chains import Chains, Place

Request = tuple[list[bytes], str, str | None]


def reference(requests: list[Request]) -> list[Place]:
    """Give the answer by search, in the plainest way."""
    places: list[Place] = []
    for number, (messages, model, given_session) in enumerate(requests):
        earlier = [
            (len(other), at)
            for at, (other, its, named) in enumerate(requests[:number])
            if named is None and its == model and 0 < len(other) < len(messages) and messages[: len(other)] == other
        ]
        before = max(earlier)[1] if earlier and given_session is None else None
        own = str(number) if before is None else places[before].session
        name = given_session if given_session is not None else own
        same = [
            at
            for at, place in enumerate(places)
            if (place.session, requests[at][2] is None) == (name, given_session is None)
        ]
        places.append(Place(name, len(same), before))
    return places


some = st.lists(st.sampled_from([b"a", b"b"]), max_size=4)


@given(st.lists(st.tuples(some, st.sampled_from(["m", "n"]), st.sampled_from([None, None, "s"])), max_size=9))
def test_chains_are_those_of_a_search(requests: list[Request]) -> None:
    """Random requests over two letters give the places that a search over all earlier ones finds."""
    chains = Chains()
    assert [chains.place(m, model=model, session=s) for m, model, s in requests] == reference(requests)


def test_branches_stay_and_repeats_begin_anew() -> None:
    """A branch stays in the session of its stem; identical messages begin a session."""
    chains = Chains()
    found = [chains.place(m) for m in ([b"q"], [b"q", b"r", b"s"], [b"q", b"x", b"y"], [b"q"])]
    assert [(p.session, p.turn_index, p.before) for p in found] == [
        ("0", 0, None),
        ("0", 1, 0),
        ("0", 2, 0),
        ("3", 0, None),
    ]
