"""One published generation, read only: tables and views as DuckDB relations, convertible to Arrow, pandas or polars."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from kappa.arguments import opened, optional_text, require_question, text, whole_number
from kappa.asking import answers_of, cache_answer_of
from kappa.serving import answers_of as serve_answers_of
from pipelines.capacity.machines.question import CacheQuestion
from pipelines.exporting.question import ExportQuestion
from pipelines.hardware.questions.question import CritQuestion
from pipelines.serving.answers.question import ServeQuestion
from warehouse.database.engine import checked, matching, read_only, stream
from warehouse.declared.fields import BLOCK_TOKENS
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.names import listed_names
from warehouse.home.generation import DATABASE
from warehouse.home.home import Home

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import pyarrow as pa

    from pipelines.capacity.machines.answer import CacheAnswer
    from pipelines.hardware.questions.answer import CritAnswer
    from pipelines.serving.answers.answer import FleetAnswer, ServeAnswer
    from pipelines.steps.reuse.exported import Exported
    from warehouse.database.engine import Relation


def open_warehouse(home: str | os.PathLike[str] | None = None) -> Warehouse:
    """Open the current generation of a home folder; it stays the same until it is closed.

    Args:
        home: the home folder; None for KAPPA_HOME, else `./data`, as on the command line.

    Raises:
        UsageError: `home` is no path.
        KappaError: the folder has no published generation, or one of another kappa version.
    """
    return Warehouse(opened(home))


class Warehouse:
    """One generation of a home folder. Close it, or use it in a `with` statement.

    A relation is lazy: `.fetchall()`, `.to_arrow_table()`, `.df()` (pandas) or `.pl()` (polars, where it is installed)
    computes it. It belongs to this warehouse and ends with it. Only one thread may use a warehouse at a time, except
    for `interrupt`; each thread opens its own.
    """

    def __init__(self, home: Home) -> None:
        """Open the current generation of `home`.

        Raises:
            KappaError: the folder has no published generation, or one of another kappa version.
        """
        path = home.database()
        self._home = home
        self.folder = path.parent
        """The generation's folder: `warehouse.duckdb`, `lake/` and `report/`."""
        self.generation = int(self.folder.name)
        self._stack = ExitStack()
        self._connection = self._stack.enter_context(read_only(path))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the warehouse."""
        self.close()

    def close(self) -> None:
        """Release the generation; relations of this warehouse end here."""
        self._stack.close()

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables and views; docs/tables.md has their columns."""
        return tuple(TABLES)

    def table(self, name: str, **values: object) -> Relation:
        """Return the rows of a table or view in which each named column has the given value.

        Args:
            name: one of `tables`.
            values: by column; None means no condition.

        Raises:
            KappaError: the table or column does not exist.

        >>> sample.table("links", link="pcie5-x16").project("peak_bytes_per_s").fetchall()
        [(63015000000.0,)]
        """
        if text("name", name) not in TABLES:
            raise KappaError(
                f"there is no table {name!r}",
                listed_names(name, TABLES),
                "name one of them",
                code=ErrorCode.UNKNOWN_NAME,
            )
        lacking = [column for column in values if column not in TABLES[name].names]
        if lacking:
            raise KappaError(
                f"{name} has no column {lacking[0]!r}",
                listed_names(lacking[0], TABLES[name].names),
                "name one of them",
                code=ErrorCode.UNKNOWN_NAME,
            )
        return matching(self._connection.table(name), values)

    def turns(
        self,
        *,
        workload: str | None = None,
        tokenizer: str | None = None,
        counting: str | None = None,
        reuse: str | None = None,
    ) -> Relation:
        """Return `turns`, one row a turn: K is `cached_tokens`, T is `prefill_tokens`.

        Args:
            workload: such as `sharegpt`; None for all.
            tokenizer: such as `qwen3`; None for all.
            counting: `text`, `chat`, or `logged` where the log has the counts; None for all.
            reuse: what K is: `history`, `prefix` or `reported`; None for all.

        Raises:
            KappaError: this warehouse has no such workload, tokenizer, counting or reuse.

        >>> turns = sample.turns(workload="finqa", tokenizer="qwen3", counting="chat")
        >>> turns.aggregate("min(prefill_tokens) > 0").fetchall()
        [(True,)]
        """
        series = self._series(workload=workload, tokenizer=tokenizer, counting=counting, reuse=reuse)
        return self.table("turns", **series)

    def percentiles(  # noqa: PLR0913 - the key of the table
        self,
        *,
        workload: str | None = None,
        tokenizer: str | None = None,
        counting: str | None = None,
        reuse: str | None = None,
        metric: str | None = None,
        population: str | None = None,
        block_tokens: int = 1,
    ) -> Relation:
        """Return exact percentiles, one row a value, at any reuse granularity.

        Args:
            workload: see `turns`, as are `tokenizer`, `counting` and `reuse`.
            tokenizer: see `workload`.
            counting: see `workload`.
            reuse: see `workload`.
            metric: `kappa_ratio`, `cached_tokens`, `prefill_tokens`, `context_tokens`, `output_tokens`; None for all.
            population: `all` turns, or `reused` (K > 0); None for both.
            block_tokens: reuse granularity in tokens, at least 1: 16 is a block of vLLM, 256 a chunk of LMCache.

        Raises:
            KappaError: this warehouse has no such workload, tokenizer, counting or reuse, or `block_tokens` is below 1.

        >>> rows = sample.percentiles(workload="sharegpt", tokenizer="qwen3", counting="text", metric="kappa_ratio")
        >>> rows.filter("population = 'reused' AND percentile = 50").project("block_tokens").fetchall()
        [(1,)]
        """
        if whole_number("block_tokens", block_tokens) < 1:
            raise KappaError(
                f"block_tokens {block_tokens} is not possible",
                "a block holds a token",
                "give 1 or more",
                code=ErrorCode.USAGE,
            )
        series = self._series(workload=workload, tokenizer=tokenizer, counting=counting, reuse=reuse)
        values = {**series, "metric": metric, "population": population}
        if block_tokens in BLOCK_TOKENS:
            return self.table("percentiles", block_tokens=block_tokens, **values)
        # The block is a checked whole number: macros take no parameters of a relation.
        return matching(self._connection.sql(f"FROM percentiles_at({int(block_tokens)})"), values)

    def sql(self, query: str, parameters: Mapping[str, object] | None = None) -> Relation:
        """Return the rows of one query over the tables and views.

        Args:
            query: DuckDB's SQL; it can read only this generation.
            parameters: values of `$name` in the query.

        Raises:
            KappaError: DuckDB rejects the query; the message says where it is wrong.

        >>> sample.sql("SELECT count(DISTINCT workload) FROM turns WHERE tokenizer = $t", {"t": "qwen3"}).fetchall()
        [(4,)]
        """
        return checked(self._connection, text("query", query), dict(parameters or {}))

    def batches(self, query: str, batch_rows: int = 1 << 16, form: str = "parquet") -> pa.RecordBatchReader:
        """Return the rows of a query in batches, computed as they are read: what `kappa sql` writes.

        Args:
            query: see `sql`; several statements if only the last one returns rows.
            batch_rows: rows in a batch, at most.
            form: `table`, `csv`, `json` or `parquet`: values that it cannot hold are cast.

        Raises:
            KappaError: DuckDB rejects the query; the message says where it is wrong.

        >>> sum(batch.num_rows for batch in sample.batches("FROM summary", batch_rows=5))
        24
        """
        return stream(self._connection, text("query", query), batch_rows, form)

    def interrupt(self) -> None:
        """Stop the query that runs, from another thread or a signal handler."""
        self._connection.interrupt()

    def crit(self, question: CritQuestion) -> list[CritAnswer]:
        """Return the answers to a question; a workload's use the turns of this generation. See `kappa.crit`.

        Raises:
            UsageError: the question contradicts itself, or has an impossible number.
            KappaError: a name is unknown (the nearest are named), or nothing fits the choice.

        >>> asked = CritQuestion(model="llama-3.1-70b", accelerator="h100-sxm", workload="finqa", cost_model="2n")
        >>> {(answer.workload, answer.counting, answer.is_sample) for answer in sample.crit(asked)}
        {('finqa', 'text', True)}
        """
        return answers_of(question, self._home.path, lambda: self.folder / DATABASE)

    def cache(self, question: CacheQuestion) -> CacheAnswer:
        """Return how much of a workload of this generation caches keep, for a model on a machine.

        Raises:
            UsageError: the question has an impossible number.
            KappaError: a name is unknown, the model does not fit, or the workload is not here.

        >>> from kappa import CacheQuestion, Tier
        >>> asked = CacheQuestion("sharegpt", "llama-3.1-405b", "h100-sxm", tiers=(Tier("dram", 512e9),))
        >>> gpu_alone, with_dram = sample.cache(asked).rows
        >>> gpu_alone.hit_ratio < with_dram.hit_ratio, gpu_alone.link_token_share
        (True, 0.0)
        """
        return cache_answer_of(question, self._home.path, lambda: self.folder / DATABASE)

    def export(self, question: ExportQuestion) -> Exported:
        """Return a workload of the home folder as a trace without text, from what its latest run left there.

        Raises:
            UsageError: a field of another type, or a form or size of blocks that there is not.
            KappaError: the workload was not run here, or its K has no blocks.

        >>> from kappa import ExportQuestion
        >>> trace = sample.export(ExportQuestion("finqa", form="bailian"))
        >>> import json
        >>> first = json.loads(next(trace.lines))
        >>> first["parent_chat_id"], first["turn"], trace.block_tokens, trace.written.requests
        (-1, 1, 16, 1)
        """
        from pipelines.steps.reuse.exported import exported  # noqa: PLC0415 - NumPy is slow to import

        require_question(question, ExportQuestion)
        note = self._home.current_note() or {}
        return exported(self._home.staging(is_sample=bool(note.get("is_sample"))), question)

    def serve_sim(self, question: ServeQuestion) -> list[ServeAnswer] | list[FleetAnswer]:
        """Return what happens when turns of this generation meet on a machine or a fleet. See `kappa.serve_sim`.

        Raises:
            UsageError: the question contradicts itself, or has an impossible number.
            KappaError: a name is unknown (the nearest are named), nothing fits the choice, or a price lacks.

        >>> asked = ServeQuestion(
        ...     model="llama-3.1-8b", accelerator="h100-sxm", link="pcie5-x16", basis="physical", workload="finqa",
        ...     turns=100, rates_per_s=(1.0, 5.0),
        ... )
        >>> [(answer.policy, answer.rate_per_s, answer.turns) for answer in sample.serve_sim(asked)]
        [('fifo', 1.0, 53), ('fifo', 5.0, 53)]
        """
        return serve_answers_of(question, self._home.path, lambda: self.folder / DATABASE)

    def _series(self, **names: str | None) -> dict[str, str | None]:
        """Return the names; KappaError for one that the warehouse does not hold, instead of an empty result."""
        summary = self._connection.table("summary")
        for column, name in names.items():
            optional_text(column, name)
            known = [row[0] for row in summary.project(column).distinct().order(column).fetchall()]
            if name is not None and name not in known:
                what, why = f"there is no {column} {name!r} here", listed_names(name, known)
                raise KappaError(what, why, "name one of them", code=ErrorCode.UNKNOWN_NAME)
        return names
