"""The order in which the requests of a log are served: by their times, or as they are in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SERVICE = "service.parquet"


@dataclass(frozen=True)
class Service:
    """The order in which requests are served.

    Attributes:
        order: Place in the file of the request served first, second, ...; shape (requests,).
        arrival_s: Time of arrival in seconds, in order of service; shape (requests,). None where it is not known.
        note: Why the order is that of the file; empty where no time is given, or all can be read.
    """

    order: Ints
    arrival_s: Floats | None
    note: str = ""


@dataclass(frozen=True)
class Places:
    """Where each request belongs, in order of service, shape (requests,) each: see `Service` and `Requests`."""

    order: Ints
    session: Ints
    turn_index: Ints
    arrival_s: Floats | None


def write_service(service: Service, session: Sequence[int], turn_index: Sequence[int], folder: Path) -> None:
    """Write the order, and session and turn of each request in that order."""
    unknown = pa.nulls(len(session), pa.float64())
    columns = {
        "place": pa.array(service.order),
        "session": pa.array(session, pa.int64()),
        "turn_index": pa.array(turn_index, pa.int64()),
        "arrival_s": unknown if service.arrival_s is None else pa.array(service.arrival_s),
    }
    pq.write_table(pa.table(columns), folder / SERVICE)


def read_service(folder: Path) -> Places:
    """Return what `write_service` wrote."""
    table = pq.read_table(folder / SERVICE)
    arrival = table["arrival_s"]
    order, session, turn_index = (table[name].to_numpy() for name in ("place", "session", "turn_index"))
    return Places(order, session, turn_index, None if arrival.null_count else arrival.to_numpy())
