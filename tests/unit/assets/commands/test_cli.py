"""The command line: options, exit codes, errors in one line, and `kappa sql` over a tiny home."""

from __future__ import annotations

import argparse
import csv
import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.commands import calibrate, cli, doctor, measure, querying, running
from assets.commands.cache import command as cache
from assets.commands.cli import build_parser, main, readable
from assets.commands.crit import command as crit
from assets.commands.own import command as own
from assets.commands.own import exporting, tokenizers
from assets.commands.serving import command as serving
from warehouse.database.build import build_database
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.generation import DATABASE
from warehouse.home.home import Home, home_path
from warehouse.versions.installed import package_version

ROOT = Path(__file__).parents[4]
COMMANDS = {
    "run": running, "refresh": running, "report": running, "sql": querying, "crit": crit, "doctor": doctor,
    "measure": measure, "calibrate": calibrate, "cache": cache, "serve-sim": serving, "add-tokenizer": tokenizers,
    "workloads": own, "add": own, "remove": own, "profile": own, "export": exporting,
}  # fmt: skip
# What a command needs besides options.
NEEDED = {
    "add": ["mine", "file"],
    "remove": ["mine"],
    "export": ["mine"],
    "profile": ["file"],
    "add-tokenizer": ["mine", "file"],
    "cache": ["mine"],
}
# Options that a command needs, with a value each.
REQUIRED = {"cache": ("--model", "--accelerator"), "calibrate": ("--file",)}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, turns_table: Callable[..., pa.Table]) -> Path:
    """Return a published home with three turns."""
    folder = tmp_path_factory.mktemp("cli")
    turns = folder / "turns.parquet"
    pq.write_table(turns_table([("a", 0, 0, 3, 2), ("a", 1, 5, 1, 4), ("b", 0, 0, 12345, None)]), turns)
    files: dict[str, list[Path]] = {name: [] for name, table in TABLES.items() if not table.is_view}
    home = Home(folder / "home")
    home.prepare()
    staging = home.staging(is_sample=False)
    with staging.build("warehouse", "w") as draft:
        build_database(draft.folder / DATABASE, files | {"turns": [turns]})
        draft.meta.update(generation=1, content="c", is_sample=False, series=[])
    with staging.build("report", "r") as draft:
        (draft.folder / "report.html").write_text("page", "utf8")
    home.publish(staging.require("warehouse"), staging.require("report"))
    return home.path


def options_of(command: str) -> list[argparse.Action]:
    """Return what a command may be given, but for its help."""
    (commands,) = [one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction)]
    return [one for one in commands.choices[command]._actions if one.option_strings and one.dest != "help"]


class Ran:
    """Exit code and output of a command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        """Keep them."""
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def sql(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs `kappa sql` on the tiny home."""

    def run(*arguments: str) -> Ran:
        code = main(["--home", str(home), "sql", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


class TestParser:
    """The options of the design, section 7."""

    def test_commands(self) -> None:
        """Every command with its module."""
        assert {name: module.__name__ for name, module in COMMANDS.items()} == cli._COMMANDS
        assert all(callable(getattr(module, name.replace("-", "_"))) for name, module in COMMANDS.items())

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("run", {"sample": False, "workload": [], "tokenizer": []}),
            ("run --sample --workload finqa --workload sharegpt --tokenizer qwen3",
             {"sample": True, "workload": ["finqa", "sharegpt"], "tokenizer": ["qwen3"]}),
            ("refresh", {"check": False}),
            ("refresh --check", {"check": True}),
            ("sql q", {"query": "q", "file": None, "format": None, "output": None}),
            ("sql --file f --format csv --output o", {"query": None, "file": "f", "format": "csv", "output": "o"}),
            ("crit", {"model": None, "accelerator": None, "link": None, "basis": None, "bandwidth": None,
                      "kv_dtype": None, "tensor_parallel": None, "format": None}),
            ("crit --bandwidth 15GB/s --kv-dtype fp8 --tensor-parallel 8 --basis paper",
             {"bandwidth": "15GB/s", "kv_dtype": ["fp8"], "tensor_parallel": [8], "basis": "paper"}),
            ("crit --model a --model b --tensor-parallel 1 --tensor-parallel 8",
             {"model": ["a", "b"], "tensor_parallel": [1, 8]}),
            ("report --open", {"open": True}),
            ("doctor", {"command": "doctor"}),
        ],
    )  # fmt: skip
    def test_options(self, line: str, expected: dict[str, object]) -> None:
        """Each option has its name and default."""
        found = vars(build_parser().parse_args(line.split()))
        assert {name: found[name] for name in expected} == expected

    @pytest.mark.parametrize(
        ("line", "nearest"),
        [
            ("rnu", "run"), ("dcotor", "doctor"), ("crit --modle x", "--model"), ("run --smaple", "--sample"),
            ("crit --basis phyiscal", "physical"), ("sql --format jsno q", "json"), ("zzz", None),
        ],
    )  # fmt: skip
    def test_a_slip_is_answered_with_the_nearest(
        self, line: str, nearest: str | None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Commands, options and values."""
        with pytest.raises(SystemExit) as left:
            main(line.split())
        told = capsys.readouterr().err
        assert (left.value.code, told.count("\n")) == (2, 1)
        assert (f"nearest is {nearest}," in told) == (nearest is not None)

    @pytest.mark.parametrize("line", ["--home h --debug run", "run --home h --debug", "--home h run --debug"])
    def test_global_options_stand_anywhere(self, line: str) -> None:
        """--home and --debug are understood before and behind the command."""
        assert {"home": "h", "debug": True}.items() <= vars(build_parser().parse_args(line.split())).items()

    @pytest.mark.parametrize("line", ["", "nope", "run more", "run --nope", "sql a b", "sql q --format xml", "--home"])
    def test_usage(self, line: str, capsys: pytest.CaptureFixture[str]) -> None:
        """Wrong usage is exit code 2 with one line that says what, why and where to read how."""
        with pytest.raises(SystemExit) as caught:
            main(line.split())
        told = capsys.readouterr()
        # 1 line, nothing on standard output
        assert (caught.value.code, told.out, told.err.count("\n")) == (2, "", 1)
        assert told.err.startswith("error: ")
        assert "see `kappa" in told.err

    @pytest.mark.parametrize("command", COMMANDS)
    def test_an_option_is_given_once(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        """Of two values none is dropped without a word, and an empty one is no value, for any option of any command."""
        for option in options_of(command):
            value = [] if option.nargs == 0 else [str(next(iter(option.choices or ["1"])))]
            once = [option.option_strings[0], *value]
            lines = [] if isinstance(option, argparse._AppendAction) else [[command, *once, *once]]
            lines += [[command, once[0], empty] for empty in ("", " ")] if value else []
            lines += [[*once, command, *once]] if option.dest in ("home", "debug") else []
            for line in lines:
                with pytest.raises(SystemExit) as caught:
                    build_parser().parse_args(line)
                told = capsys.readouterr()
                # 1 line that names the option
                assert (caught.value.code, told.out, told.err.count("\n")) == (2, "", 1), line
                assert told.err.startswith(f"error: argument {'/'.join(option.option_strings)}, "), line
            others = [
                part for name in REQUIRED.get(command, ()) if name not in option.option_strings for part in (name, "1")
            ]
            needed = [] if option.dest == "workload" and command == "cache" else NEEDED.get(command, [])
            line = [command, *needed, *others, *once]
            assert build_parser().parse_args(line).command == command

    @pytest.mark.parametrize("line", ["cache w", "cache --workload w"])
    def test_the_workload_of_a_cache(self, line: str) -> None:
        """Its place is enough, and `--workload` as the other commands take it; the number of GPUs has two names too."""
        more = ["--model", "m", "--accelerator", "a"]
        options = build_parser().parse_args([*line.split(), *more, "--tensor-parallel", "2"])
        assert (options.workload or options.place, options.gpus) == ("w", 2)
        assert build_parser().parse_args([*line.split(), *more, "--gpus", "2"]).gpus == 2

    @pytest.mark.parametrize("line", ["--help", "run --help", "sql --help", "crit --help", "--version"])
    def test_help(self, line: str, capsys: pytest.CaptureFixture[str]) -> None:
        """Help and version are exit code 0."""
        with pytest.raises(SystemExit) as caught:
            main(line.split())
        assert caught.value.code == 0
        assert package_version() in capsys.readouterr().out or line != "--version"

    def test_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """--home before KAPPA_HOME before ./data."""
        monkeypatch.delenv("KAPPA_HOME", raising=False)
        assert home_path(None) == Path("data")
        monkeypatch.setenv("KAPPA_HOME", "/somewhere")
        assert (home_path(None), home_path("here")) == (Path("/somewhere"), Path("here"))

    def test_help_is_quick(self) -> None:
        """Neither help nor the parser imports what is slow."""
        heavy = {"dagster", "duckdb", "pyarrow", "datasets", "transformers", "seaborn", "pandas", "huggingface_hub"}
        code = (
            "import sys; from assets.commands.cli import build_parser; build_parser().format_help();"
            f"print(sorted({heavy!r} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        # 0 of 8
        assert done.stdout.strip() == "[]"

    def test_sql_is_quick(self, home: Path) -> None:
        """`kappa sql` imports DuckDB and Arrow and nothing else that is slow."""
        heavy = {"dagster", "datasets", "transformers", "seaborn", "pandas", "huggingface_hub", "fastokens"}
        code = (
            f"import sys; from assets.commands.cli import main; "
            f"main(['--home', {str(home)!r}, 'sql', 'SELECT 1 AS one']);"
            f"print(sorted({heavy!r} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        # 0 of 7
        assert done.stdout.splitlines()[-1] == "[]"


class TestErrors:
    """error: what, why, what to do."""

    @pytest.fixture
    def failing(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
        """Return a function that makes `kappa doctor` raise."""

        def put(error: BaseException) -> None:
            def command(_: object) -> int:
                raise error

            monkeypatch.setattr(doctor, "doctor", command)

        return put

    @pytest.mark.parametrize(
        ("error", "line"),
        [
            (KappaError("what", "why", "do", code=ErrorCode.USAGE), "error: what, why, do\n"),
            (KappaError("a\nb", "c\t d", "e", code=ErrorCode.USAGE), "error: a b, c d, e\n"),
            (
                OSError(errno.ENOSPC, "x", "/a/b"),
                (
                    "error: /a/b could not be written, No space left on device; the last good state is as it was, "
                    "free disk space or mend permissions, then run again\n"
                ),
            ),
        ],
    )
    def test_one_line(
        self, failing: Callable[..., None], capsys: pytest.CaptureFixture[str], error: Exception, line: str
    ) -> None:
        """Exit code 1, one line on standard error, nothing on standard output."""
        failing(error)
        assert main(["doctor"]) == 1
        told = capsys.readouterr()
        assert (told.out, told.err) == ("", line)

    def test_a_defect(self, failing: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
        """What nobody foresaw is one line too, and --debug shows where it comes from."""
        failing(ZeroDivisionError("by zero\nand more"))
        assert main(["doctor"]) == 1
        err = capsys.readouterr().err
        # 1 line
        assert (err.count("\n"), "Traceback" in err) == (1, False)
        assert "ZeroDivisionError: by zero" in err
        assert "--debug" in err
        assert main(["--debug", "doctor"]) == 1
        assert "Traceback" in capsys.readouterr().err

    def test_ctrl_c(self, failing: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
        """130, and a word on the state."""
        failing(KeyboardInterrupt())
        # 128 + 2, the number of SIGINT
        assert main(["doctor"]) == 130
        assert "the last good state is as it was" in capsys.readouterr().err

    def test_the_cause_is_told(self) -> None:
        """Of a chain, the KappaError that a framework wrapped; of others the disk error, else the root."""
        wrapped = RuntimeError("step failed")
        wrapped.__cause__ = KappaError("a", "b", "c", code=ErrorCode.USAGE)
        assert str(readable(wrapped)) == "a, b, c"
        wrapped.__cause__ = OSError(errno.EROFS, "x")
        assert "Read-only file system" in str(readable(wrapped))
        wrapped.__cause__ = ValueError("root")
        assert "ValueError: root" in str(readable(wrapped))
        assert "ValueError: no message" in str(readable(ValueError()))

    def test_a_chain_that_bites_its_tail(self) -> None:
        """Errors that are each other's cause do not loop."""
        one, two = ValueError("one"), ValueError("two")
        one.__cause__, two.__cause__ = two, one
        assert "ValueError" in str(readable(one))

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (
                ["run", "--workload", "nope"],
                "unknown workload 'nope', there are sharegpt, sharegpt-v3, narrativeqa, finqa",
            ),
            (["run", "--tokenizer", "nope"], "unknown tokenizer 'nope'"),
            (["sql", "SELECT 1"], "has no warehouse yet"),
            (["refresh", "--check"], "has no warehouse yet"),
            (["report"], "has no warehouse yet"),
        ],
    )
    def test_bad_input(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
    ) -> None:
        """One line, exit code 1, and the home is not created."""
        assert main(["--home", str(tmp_path / "none"), *arguments]) == 1
        err = capsys.readouterr().err
        assert err.startswith("error: ")
        assert words in err
        assert not (tmp_path / "none").exists()

    @pytest.mark.parametrize("command", [["sql", "SELECT 1"], ["refresh"], ["report"]])
    def test_an_older_layout(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
        """Every command but `run`, which sets it aside, refuses it and leaves it as it is."""
        (tmp_path / "LAYOUT").write_text("0\n", "utf8")
        assert main(["--home", str(tmp_path), *command]) == 1
        assert "holds a warehouse of layout 0, this kappa uses layout 1" in capsys.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == ["LAYOUT"]

    def test_a_home_that_cannot_be_written(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A file in the way is told."""
        (tmp_path / "file").touch()
        assert main(["--home", str(tmp_path / "file"), "run", "--sample"]) == 1
        assert "cannot be written" in capsys.readouterr().err

    def test_the_reader_goes_away(self, home: Path) -> None:
        """A pipe that is closed early, as by `head`, ends the command without a word."""
        arguments = ["--home", str(home), "sql", "FROM range(300000)", "--format", "csv"]
        code = f"import sys; from assets.commands.cli import main; sys.exit(main({arguments!r}))"
        with subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as run:
            assert run.stdout is not None
            assert run.stderr is not None
            assert run.stdout.readline() == b"range\n"
            run.stdout.close()
            err = run.stderr.read()
        # exit code 0
        assert (run.returncode, err) == (0, b"")


class TestSql:
    """`kappa sql` in every format."""

    QUERY = "SELECT session_id, prefill_tokens, output_tokens, kappa_ratio FROM turns"

    def test_table(self, sql: Callable[..., Ran]) -> None:
        """Numbers to the right, NULL empty."""
        ran = sql(self.QUERY)
        # 5 / 1 = 5
        assert (ran.code, ran.out.splitlines()) == (0, [
            "session_id  prefill_tokens  output_tokens  kappa_ratio",
            "a                        3              2          0.0",
            "a                        1              4          5.0",
            "b                    12345                         0.0",
        ])  # fmt: skip

    def test_csv_and_json(self, sql: Callable[..., Ran]) -> None:
        """Both hold the same rows, unrounded."""
        rows = list(csv.DictReader(io.StringIO(sql(self.QUERY, "--format", "csv").out)))
        assert rows[2] == {"session_id": "b", "prefill_tokens": "12345", "output_tokens": "", "kappa_ratio": "0.0"}
        found = json.loads(sql(self.QUERY, "--format", "json").out)
        assert found[1] == {"session_id": "a", "prefill_tokens": 1, "output_tokens": 4, "kappa_ratio": 5.0}

    def test_files(self, sql: Callable[..., Ran], tmp_path: Path) -> None:
        """--output writes a file and nothing else; Parquet needs one."""
        for form in ("parquet", "csv"):
            ran = sql(self.QUERY, "--format", form, "--output", str(tmp_path / form))
            assert (ran.code, ran.out) == (0, "")
        # 3 rows; a header and 3 rows
        assert pq.read_table(tmp_path / "parquet").num_rows == 3
        assert (tmp_path / "csv").read_text("utf8").count("\n") == 4
        ran = sql(self.QUERY, "--format", "parquet")
        assert (ran.code, "Parquet needs a file" in ran.err) == (1, True)
        ran = sql(self.QUERY, "--output", str(tmp_path / "no" / "file"))
        assert (ran.code, "cannot be written" in ran.err) == (1, True)

    def test_where_the_query_comes_from(
        self, sql: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As text, from a file, from standard input; two or none are wrong usage."""
        file = tmp_path / "q.sql"
        file.write_text("SELECT 2 AS n", "utf8")
        assert sql("--file", str(file)).out == "n\n2\n"
        monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 3 AS n"))
        assert sql().out == "n\n3\n"
        for arguments, words, code in (
            (("SELECT 1", "--file", str(file)), "two queries are given", 2),
            (("--file", str(tmp_path / "none")), "cannot be read", 1),
            ((), "there is no query", 2),
            (("  ",), "there is no query", 2),
            ((" ;\n",), "there is no query", 2),
            (("-- a comment",), "there is no query", 2),
            (("SELECT 1 AS a; SELECT 2 AS b",), "more than one query", 2),
            (("SELECT '\udcff'",), "the query is no text, byte 0xff in position 8 is none of UTF-8, give UTF-8", 1),
        ):
            monkeypatch.setattr(sys, "stdin", io.StringIO(""))
            ran = sql(*arguments)
            assert (ran.code, words in ran.err) == (code, True)

    def test_standard_input_that_is_no_text(self, sql: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
        """Bytes that are no UTF-8 are told, whether Python reads them strictly or hands them through."""
        for errors, words in (("surrogateescape", "byte 0xff in position 7"), ("strict", "decode byte 0xff")):
            raw = io.TextIOWrapper(io.BytesIO(b"SELECT \xff 1"), encoding="utf8", errors=errors)
            monkeypatch.setattr(sys, "stdin", raw)
            ran = sql()
            assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
            assert ran.err.startswith("error: standard input is no text, ")
            assert words in ran.err

    @pytest.mark.parametrize(
        "query",
        ["SELEC 1", "SELECT none FROM turns", "FROM nothing", "DROP TABLE turns", "SELECT error('x')",
         "FROM read_csv('/etc/hostname')", "SELECT 'a'::INT"],
    )  # fmt: skip
    def test_refused(self, sql: Callable[..., Ran], query: str) -> None:
        """A query that DuckDB refuses is one line and exit code 1."""
        ran = sql(query)
        # 1 line
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert ran.err.startswith("error: the query failed, ")

    @pytest.mark.parametrize(
        ("query", "place"),
        [
            ("SELECT\n  workload,\n  kapa_ratio\nFROM turns", "line 3, column 3, at `kapa_ratio`"),
            ("SELECT 1 FROM\n turns WHER n=1", "line 2, column 13, at `n`"),
            ("SELECT *\n\t\tFROM truns", "line 2, column 8, at `truns`"),
            ("SET TimeZone = 'UTC';\n\nSELECT 'ä', nope FROM turns", "line 3, column 13, at `nope`"),
            ("SELECT\n 'a'::INTEGR", "line 2, column 7, at `INTEGR`"),
            ("SELECT " + "1, " * 100 + "\n" + "1, " * 100 + "nope FROM turns", "line 2, column 301, at `nope`"),
            ("SELECT abs(\n workload) FROM turns", "line 1, column 8, at `abs(`"),
            ("SELECT 1 1 1", "line 1, column 10, at `1`"),
            ("SELECT '日本語' x yy", "line 1, column 16, at `yy`"),
            ("SELECT 'x' \U0001f600 yy", "line 1, column 14, at `yy`"),
            ("SELECT 'e\u0301' x yy", "line 1, column 15, at `yy`"),
            ("SELECT\t\t1 1 1", "line 1, column 11, at `1`"),
        ],
    )
    def test_where_a_mistake_is(
        self, sql: Callable[..., Ran], query: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A mistake is told with its line and words, whether the query is text, a file or standard input."""
        (tmp_path / "q.sql").write_text(query, "utf8")
        monkeypatch.setattr(sys, "stdin", io.StringIO(query))
        for ran in (sql(query), sql("--file", str(tmp_path / "q.sql")), sql()):
            assert (ran.code, ran.err.count("\n")) == (1, 1)
            assert f"; {place}, " in ran.err

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("INTERVAL '1 month 2 days 3.5 s'", "1 month 2 days 00:00:03.5"), ("'\\xAA'::BLOB", "\\xAA"),
            ("true", "true"), ("0.1::FLOAT", "0.1"),
            ("'0101'::BIT", "0101"), ("[1, 2, NULL]", "[1, 2, NULL]"), ("['a b']", "[a b]"),
            ("MAP {'k': 1.5}", "{k=1.5}"),
            ("{'a': 1, 'b': 'x'}", "{'a': 1, 'b': x}"), ("'infinity'::TIMESTAMP", "infinity"),
            ("'-infinity'::DATE", "-infinity"), ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'",
            "2024-01-01 00:00:00.123456789"), ("'infinity'::TIMESTAMPTZ", "infinity"),
            ("340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"),
        ],
    )  # fmt: skip
    def test_values_are_shown_as_duckdb_shows_them(self, sql: Callable[..., Ran], value: str, text: str) -> None:
        """What Arrow or Python would show in words of their own reads as DuckDB casts it to VARCHAR."""
        query = f'SELECT {value} AS "a ""b"", c", 1 AS n'
        assert sql(query).out.splitlines()[1].split("  ")[0] == text
        rows = list(csv.reader(io.StringIO(sql(query, "--format", "csv").out)))
        assert rows == [['a "b", c', "n"], [text, "1"]]

    def test_values_in_json(self, sql: Callable[..., Ran]) -> None:
        """Lists, structs and maps stay; what JSON has no kind for is text, in them too; decimals are whole."""
        query = """SELECT ['infinity'::TIMESTAMP] AS l, {'a "b"': [DATE '2024-01-02'], 'n': 1.50} AS s,
                   MAP {'k': INTERVAL '5 years'} AS m, [1, 2]::INT[2] AS f, ['0101'::BIT]::BIT[1] AS g,
                   123456789012345678.123456789::DECIMAL(38, 9) AS d, 'infinity'::TIMESTAMP AS t, '\\xAA'::BLOB AS b"""
        ran = sql(query, "--format", "json")
        assert json.loads(ran.out, parse_float=str) == [
            {"l": ["infinity"], "s": {'a "b"': ["2024-01-02"], "n": "1.50"}, "m": [["k", "5 years"]], "f": [1, 2],
             "g": ["0101"], "d": "123456789012345678.123456789", "t": "infinity", "b": "aa"}
        ]  # fmt: skip

    def test_order_and_names_are_kept_where_values_are_cast(self, sql: Callable[..., Ran]) -> None:
        """Rows stay in their order and columns keep their names, also where two have one name."""
        ran = sql("SELECT n AS a, [n] AS a FROM range(5000) AS r(n) ORDER BY n DESC", "--format", "csv")
        assert ran.out.splitlines() == ["a,a", *(f"{n},[{n}]" for n in range(4999, -1, -1))]
        assert sql("SUMMARIZE turns").code == 0

    def test_all_tables_are_listed(self, sql: Callable[..., Ran]) -> None:
        """SHOW TABLES names every table of the design."""
        assert set(sql("SHOW TABLES").out.split()[1:]) == set(TABLES)

    def test_the_home_is_not_changed(self, sql: Callable[..., Ran], home: Path) -> None:
        """A query leaves no file behind."""
        before = _listing(home)
        assert sql(self.QUERY).code == 0
        assert _listing(home) == before

    def test_from_the_environment(
        self, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """KAPPA_HOME is enough."""
        monkeypatch.setenv("KAPPA_HOME", str(home))
        assert main(["sql", "SELECT count(*) AS n FROM turns"]) == 0
        # 3 turns
        assert capsys.readouterr().out == "n\n3\n"


def _listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), os.lstat(path).st_mtime_ns) for path in folder.rglob("*"))


def test_print_result_of_a_home_without_percentiles(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table is empty, and where the report is stands below it."""
    running.print_result(Home(home))
    out: Any = capsys.readouterr().out
    # generation 1
    assert "generation 1 in" in out
    assert "report.html" in out
