"""Readers of HOME/lake by path while generations are published: one generation's rows or an error, never a mix."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from fsspec.implementations.local import LocalFileSystem

from warehouse.declared.tables import TURNS
from warehouse.home.generation import DATABASE, LAKE
from warehouse.home.home import Home
from warehouse.home.lake import write_lake

SeriesOf = Callable[..., pa.Table]
# What odd and even generations hold: workloads, K of every row, and how many rows each workload has.
STATES = {1: (("w1", "w2"), 10, 3), 0: (("w1", "w2", "w3"), 20, 5)}
RIGHT = {json.dumps([[name, k, rows] for name in names]) for names, k, rows in STATES.values()}
READER = Path(__file__).with_name("lake_reader.py")
HOW = ("duckdb", "duckdb, lazy", "duckdb, one folder", "pyarrow", "pandas")


class Publisher:
    """A home that publishes one small generation after another."""

    def __init__(self, path: Path, turns_table: SeriesOf) -> None:
        """Publish the first one below `path`."""
        self.home, self.turns_table = Home(path / "home"), turns_table
        self.home.prepare()
        self.staging = self.home.staging(is_sample=False)
        with self.staging.build("report", "r") as draft:
            (draft.folder / "report.html").touch()
        self.publish()

    def publish(self) -> None:
        """Publish the next generation."""
        generation = self.home.next_generation()
        with self.staging.build("warehouse", str(generation)) as draft:
            (draft.folder / DATABASE).touch()
            write_lake(TURNS, self.parts(generation), draft.folder / LAKE, generation)
            draft.meta.update(generation=generation, content=str(generation), is_sample=False, series=[])
        self.home.publish(self.staging.require("warehouse"), self.staging.require("report"))

    def parts(self, generation: int) -> Iterator[pa.Table]:
        """Yield what a generation holds."""
        names, k, rows = STATES[generation % 2]
        return (self.turns_table([(f"s{n}", 1, k, 1, 1) for n in range(rows)], name) for name in names)

    @property
    def folder(self) -> Path:
        """The folder of `turns` by the path that leads through `current`."""
        return self.home.path / LAKE / TURNS.name


@pytest.fixture
def publisher(tmp_path: Path, turns_table: SeriesOf) -> Publisher:
    """Return a home with one generation."""
    return Publisher(tmp_path, turns_table)


def came_out(publisher: Publisher, how: str, reads: int) -> dict[str, int]:
    """Publish for as long as another process reads; return what it read, and how often."""
    command = [sys.executable, str(READER), str(publisher.folder), how, str(reads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while process.poll() is None:
            publisher.publish()
        return dict(json.loads(process.stdout.read()))


@pytest.mark.parametrize("how", HOW)
def test_reads_in_another_process(publisher: Publisher, how: str) -> None:
    """Each of 60 reads during publications is one generation's rows, all of them, or an error."""
    seen = came_out(publisher, how, 60)
    assert sum(seen.values()) == 60
    assert {rows for rows in seen if not rows.startswith("error: ")} <= RIGHT
    assert publisher.home.next_generation() > 2


class Swapping(LocalFileSystem):  # type: ignore[misc]
    """A file system whose reader is overtaken by publications: before its `at`-th call, one or more."""

    protocol = "swapping"
    cachable = False

    def __init__(self, publisher: Publisher, at: int, publications: int) -> None:
        """Count calls from here on."""
        super().__init__()
        self.publisher, self.at, self.publications, self.calls = publisher, at, publications, 0

    def _step(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            for _ in range(self.publications):
                self.publisher.publish()

    def ls(self, path: str, detail: bool = False, **options: Any) -> Any:  # noqa: ANN401 - theirs
        """List a folder."""
        self._step()
        return super().ls(path, detail, **options)

    def info(self, path: str, **options: Any) -> Any:  # noqa: ANN401 - theirs
        """Look at a file."""
        self._step()
        return super().info(path, **options)

    def _open(self, path: str, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - theirs
        self._step()
        return super()._open(path, *given, **options)


def rows_of(data: pa.Table) -> str:
    """Return workload, K and number of rows, as RIGHT has them."""
    pairs = sorted(zip(data["workload"].to_pylist(), data["cached_tokens"].to_pylist(), strict=True))
    return json.dumps([[*pair, len(list(same))] for pair, same in itertools.groupby(pairs)])


def pyarrow_read(system: Swapping, folder: Path) -> str:
    """Read by pyarrow, whose listing and opening go through `system`."""
    return rows_of(ds.dataset(str(folder), filesystem=system, format="parquet").to_table())


def duckdb_read(system: Swapping, folder: Path) -> str:
    """Read by DuckDB in the same way."""
    with duckdb.connect() as connection:
        connection.register_filesystem(system)
        query = f"FROM read_parquet('swapping://{folder}/**/*.parquet', hive_partitioning = true)"
        return rows_of(connection.sql(query).to_arrow_table())


@pytest.mark.parametrize("publications", [1, 2])
@pytest.mark.parametrize("read", [pyarrow_read, duckdb_read])
def test_overtaken_at_every_call(
    publisher: Publisher, read: Callable[[Swapping, Path], str], publications: int
) -> None:
    """One publication, or one there and one back, between any two calls of a reader: no rows of two generations."""
    results = []
    for at in itertools.count(1):
        system = Swapping(publisher, at, publications)
        try:
            results.append(read(system, publisher.folder))
        except (OSError, KeyError, duckdb.Error):
            results.append("error")
        if system.calls < at:
            break
    assert set(results) <= RIGHT | {"error"}
    # The first call finds the newest generation, and after the last one nothing is overtaken.
    assert (results[0] in RIGHT, results[-1] in RIGHT, "error" in results) == (True, True, True)


def test_overtaken_between_listing_and_opening(publisher: Publisher) -> None:
    """What DuckDB or pyarrow listed is not there any more after the next publication: an error."""
    data = ds.dataset(publisher.folder)
    with duckdb.connect() as connection:
        pattern = f"{publisher.folder}/**/*.parquet"
        listed = [name for (name,) in connection.execute("SELECT file FROM glob(?)", [pattern]).fetchall()]
        publisher.publish()
        with pytest.raises(duckdb.IOException, match="No files found that match"):
            connection.execute("SELECT count(*) FROM read_parquet(?)", [listed])
    with pytest.raises(FileNotFoundError):
        data.to_table()


def test_a_resolved_path_reads_one_state(publisher: Publisher) -> None:
    """The documented way: resolve once, read as many tables and as long as an hour."""
    folder = publisher.folder.resolve()
    publisher.publish()
    # generation 1: 3 rows of each of w1 and w2, K is 10
    assert rows_of(ds.dataset(folder).to_table()) == json.dumps([["w1", 10, 3], ["w2", 10, 3]])


def test_two_generations_share_no_file_name(publisher: Publisher) -> None:
    """Also of equal content: what was listed in one is never found in another, which a reader would take for it."""
    for _ in range(3):
        publisher.publish()
    lakes = [publisher.home.generations / str(number) / LAKE for number in publisher.home.numbers()]
    names = [path.relative_to(lake) for lake in lakes for path in lake.rglob("*.parquet")]
    # 2 + 3 + 2 + 3 files
    assert (len(names), len(set(names))) == (10, 10)
    assert {len(path.parts) for path in names} == {2}
