"""What cannot be used in a user's rows is refused with file, row and column, and what can be used is never refused."""

from __future__ import annotations

import csv
import datetime as dt
import io
import math
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from warehouse.declared import hardware_fields as h
from warehouse.declared.schema import Field, Table, Unit
from warehouse.declared.tables import TABLES
from warehouse.errors import ErrorCode
from warehouse.hardware_rows import names
from warehouse.hardware_rows.checks import contradiction
from warehouse.hardware_rows.files import typed_rows
from warehouse.hardware_rows.reference_tables import REFERENCE, USER_TABLES
from warehouse.hardware_rows.rows import load_reference, user_folder
from warehouse.hardware_rows.units import EXAMPLES, parse_quantity
from warehouse.hardware_rows.user_rows import put_rows

SURE = {"retrieved": "2024-05-01", "confidence": "high", "source": "our own box"}
MEASURED = {
    "accelerator": "h100-sxm", "link": "pcie5-x16", "device_name": "d", "bf16_flop_per_s": 7e14,
    "fp16_flop_per_s": None, "fp8_flop_per_s": None, "pinned_to_device_bytes_per_s": 5e10,
    "pinned_to_host_bytes_per_s": 5e10, "pageable_to_device_bytes_per_s": 1e9, "pageable_to_host_bytes_per_s": 1e9,
    "hbm_bytes_per_s": 3e12, "torch_version": "2", "runtime_version": None, "retrieved": "2024-05-01",
    "is_example": "false", "source": "s",
}  # fmt: skip
GOOD: dict[str, dict[str, Any]] = {
    "accelerators": {
        "accelerator": "our-gpu", "dense_bf16_flop_per_s": "3e14", "hbm_bytes": "8e10", "hbm_bytes_per_s": "3e12",
    } | SURE,
    "links": {"link": "our-link", "kind": "pcie", "peak_bytes_per_s": "3e10"} | SURE,
    "models": {name: load_reference("models").to_pylist()[0][name] for name in REFERENCE["models"].names}
    | {"model": "ours", "is_tokenizer_proxy": "FALSE"}
    | SURE,
    "measured": MEASURED,
    "platforms": {"accelerator": "h100-sxm", "link": "nvlink-c2c", "basis": "physical"} | SURE,
}  # fmt: skip


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Return an empty folder of a user's rows."""
    folder = user_folder(tmp_path)
    folder.mkdir()
    return folder


def csv_of(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as a file; flags are written in lower case."""
    text = io.StringIO()
    csv.writer(text).writerows(
        [rows[0], *([str(v).lower() if isinstance(v, bool) else v for v in row.values()] for row in rows)]
    )
    return text.getvalue().encode()


def put(user: Path, name: str, **cells: object) -> Path:
    """Write one good row with some cells changed."""
    path = user / f"{name}.csv"
    path.write_bytes(csv_of([GOOD[name] | cells]))
    return path


def kept(user: Path, name: str, **cells: object) -> dict[str, Any]:
    """Return the user's row with these cells as it is read."""
    put(user, name, **cells)
    return dict(load_reference(name, user=user).to_pylist()[-1])


def error(user: Path, code: ErrorCode, *values: object, name: str = "links") -> str:
    """Return the one line of an error that has this code and names the values."""
    with refused(code, user, *values) as caught:
        load_reference(name, user=user)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", GOOD)
def test_the_good_rows_are_good(user: Path, name: str) -> None:
    """What is refused below is refused for the cell that was changed."""
    assert kept(user, name)[REFERENCE[name].key[0]] == GOOD[name][REFERENCE[name].key[0]]


BAD = [
    # types
    ("models", {"layers": "ten"}, "'ten' is not a whole number"),
    ("models", {"total_params": "70.5"}, "'70.5' is not a whole number"),
    ("models", {"is_moe": "yes"}, "'yes' is not true or false"),
    ("models", {"source": " "}, "is empty"),
    ("measured", {"is_example": "true"}, "'true' marks an example"),
    # units; none is guessed for a bare number
    ("links", {"peak_bytes_per_s": "20GB"}, "'20GB' is not a number in bytes/s, nor one like 64GB/s"),
    ("accelerators", {"dense_bf16_flop_per_s": "312 TFLOP"}, "'312 TFLOP' is not a number in FLOP/s, nor one like"),
    ("accelerators", {"dense_bf16_flop_per_s": "1 TB/s"}, "'1 TB/s' is not a number in FLOP/s"),
    ("links", {"peak_bytes_per_s": "64"}, "'64' is below 1e+08 bytes/s (a slow disk brings 1e8"),
    ("links", {"peak_bytes_per_s": "64"}, "; with its unit it is written like 64GB/s, 60GiB/s or 400Gb/s"),
    ("accelerators", {"dense_bf16_flop_per_s": "989.5e15"}, "'989.5e15' is above 2e+17 FLOP/s"),
    ("accelerators", {"hbm_bytes": "-1"}, "'-1' is below 1e+09 bytes"),
    ("models", {"max_context_tokens": "128"}, "'128' is below 512 tokens"),
    *(("links", {"peak_bytes_per_s": cell}, "is not a number") for cell in ("nan", "-inf", "1e400", "0x10", "1,5e9")),
    ("models", {"total_params": "9" * 5000}, "...' is not a whole number"),
    *(("links", {"peak_bytes_per_s": cell}, "is below 1e+08 bytes/s") for cell in ("-3e10", "0", "-0.0", "5e-324")),
    # one of a list, days, names
    ("links", {"kind": "cable"}, "'cable' is not one of pcie"),
    ("links", {"confidence": "sure"}, "'sure' is not one of high, medium"),
    *(("links", {"retrieved": day}, "is not a day") for day in ("29.11.2026", "0024-05-01", "2024-5-1", "20240501")),
    ("accelerators", {"accelerator": "H100 SXM"}, "a row never overrides another, choose a new name"),
    ("platforms", {"accelerator": "h10-sxm"}, "'h10-sxm' is not in accelerators.csv, nearest are h100-sxm"),
    ("platforms", {"basis": "measured"}, "'measured' is not one of paper, physical"),
    ("platforms", {"link": "pcie6-x16", "basis": "paper"}, "'pcie6-x16' is not among the paper's inputs"),
    ("models", {"tokenizer": "gpt4"}, "with is_tokenizer_proxy true), nearest are llama-3.1, qwen3"),
    # one figure bounds another
    ("accelerators", {"sparse_bf16_flop_per_s": "6e14", "dense_bf16_flop_per_s": "6.1e14"}, "6.1e+14 is above sparse_"),
    ("accelerators", {"measured_bf16_flop_per_s": "3.1e14"}, "3.1e+14 is above dense_bf16_flop_per_s, 3e+14"),
    ("links", {"sustained_bytes_per_s": "4e10"}, "4e+10 is above peak_bytes_per_s, 3e+10"),
    ("links", {"to_host_bytes_per_s": "4e10"}, "4e+10 is above peak_bytes_per_s, 3e+10"),
    # 7e10 > 2 x 3e10
    ("links", {"duplex_bytes_per_s": "7e10"}, "7e+10 is above 2 x peak_bytes_per_s, 3e+10"),
    ("models", {"active_params": "9e9"}, "9e+09 is above total_params, 8.03026e+09"),
    ("models", {"layer_params": "9e9"}, "9e+09 is above active_params"),
    ("models", {"head_params": "9e9"}, "9e+09 is above active_params"),
    ("models", {"kv_heads": "64"}, "64 is above heads, 32"),
    # 1.25 x 989.5e12 = 1.237e15; 1.02 x 63.015e9 = 64.3e9; 1.25 x 3.35e12 = 4.19e12
    ("measured", {"accelerator": "H100-SXM", "bf16_flop_per_s": 1.3e15}, "1.3e+15 is above 1.25 x accelerator.dense_"),
    ("measured", {"link": "PCIe5-x16", "pinned_to_host_bytes_per_s": 65e9}, "6.5e+10 is above 1.02 x link.peak_"),
    ("measured", {"hbm_bytes_per_s": 4.2e12}, "4.2e+12 is above 1.25 x accelerator.hbm_bytes_per_s, 3.35e+12"),
]


@pytest.mark.parametrize(("name", "cells", "why"), BAD)
def test_a_bad_cell_is_refused(user: Path, name: str, cells: dict[str, object], why: str) -> None:
    """The line names file, row, the last column of `cells`, and what is wrong; it stays short."""
    path = put(user, name, **cells)
    column = "link" if why.startswith("'pcie6") else list(cells)[-1]
    line = error(user, ErrorCode.BAD_ROW, path, f"row 2, column {column}: ", why, name=name)
    assert len(line.removeprefix(str(path))) < 300


@pytest.mark.parametrize(
    ("column", "other", "most"),
    [
        ("dense_fp8_flop_per_s", "sparse_fp8_flop_per_s", 1.0),
        ("experts_per_token", "experts", 1.0),
        ("least_share_of_pinned", "most_share_of_pinned", 1.0),
        ("fp8_flop_per_s", "accelerator.dense_fp8_flop_per_s", 1.25),
        ("pinned_to_device_bytes_per_s", "link.peak_bytes_per_s", 1.02),
    ],
)
def test_one_figure_bounds_another(column: str, other: str, most: float) -> None:
    """At the bound it is taken, above it refused; where either is empty nothing is said."""
    assert contradiction({column: most, other: 1.0}) is None
    assert contradiction({column: 9.0, other: None}) is None
    # 1.01 > 1, 1.2625 > 1.25, 1.0302 > 1.02
    assert contradiction({column: 1.01 * most, other: 1.0}) is not None


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        # 128 GB/s is one direction of PCIe 6, whatever the link is called; 900e9 one direction of a later NVLink-C2C
        ("links", {"link": "pcie5-x16-ours", "peak_bytes_per_s": "128e9"}),
        ("links", {"kind": "c2c", "link": "nvlink-c2c-next", "peak_bytes_per_s": "900e9"}),
        # eight network cards of 400 Gb/s: 8 x 400e9 / 8 = 4e11
        ("links", {"kind": "network", "link": "rdma-400g", "peak_bytes_per_s": "4e11"}),
        ("accelerators", {"accelerator": "h100-sxm-ours", "dense_bf16_flop_per_s": "1979e12"}),
        ("accelerators", {"hbm_bytes": 80 * 2**30}),
        # sparsity that gains nothing, and fp8 that is emulated
        ("accelerators", {"sparse_bf16_flop_per_s": "3e14", "dense_fp8_flop_per_s": "1e14"}),
    ],
)
def test_no_name_and_no_other_row_makes_a_machine_wrong(user: Path, name: str, cells: dict[str, object]) -> None:
    """A figure that its column and its own row allow is taken."""
    assert float(kept(user, name, **cells)[list(cells)[-1]]) == float(str(list(cells.values())[-1]))


@pytest.mark.parametrize("name", ["accelerators", "links", "models"])
def test_rows_of_kappa_are_taken_under_any_name(user: Path, name: str) -> None:
    """Each as a user's, under names that begin and end with its own."""
    table, rows = REFERENCE[name], load_reference(name).to_pylist()
    key = table.key[0]
    rows = [{column: row[column] for column in table.names} for row in rows]
    renamed = [row | {key: f"{a}{row[key]}{b}"} for row in rows for a, b in (("my-", ""), ("", "-mine"))]
    (user / f"{name}.csv").write_bytes(csv_of(renamed))
    assert load_reference(name, user=user).num_rows == 3 * len(rows)


def _low(field: Field) -> float:
    return -1e15 if field.minimum is None else field.minimum


def _high(field: Field) -> float:
    return 1e15 if field.maximum is None else field.maximum


def good_values(field: Field) -> st.SearchStrategy[Any]:
    """Return any value that a field allows."""
    if field is h.RETRIEVED:
        return st.dates(dt.date(2000, 1, 1)).map(dt.date.isoformat)
    if field is h.IS_EXAMPLE:
        return st.just("false")
    if pa.types.is_boolean(field.type):
        return st.sampled_from(["true", "FALSE"])
    if pa.types.is_string(field.type):
        return st.sampled_from(field.values) if field.values else st.text("abc-,\"' 1", min_size=1).filter(str.strip)
    if pa.types.is_integer(field.type):
        return st.integers(math.ceil(_low(field)), int(_high(field)))
    return st.floats(_low(field), _high(field))


@st.composite
def rows_and_a_bad_cell(draw: st.DrawFn) -> tuple[Table, dict[str, Any], Field, float]:
    """Draw a table, a row within its bounds, one of its figures, and a number that is outside of that one's bounds."""
    table = draw(st.sampled_from(list(REFERENCE.values())).filter(lambda t: any(map(is_figure, t.fields))))
    row = {field.name: draw(good_values(field)) for field in table.fields}
    field = draw(st.sampled_from([field for field in table.fields if is_figure(field)]))
    below = st.floats(max_value=_low(field), exclude_max=True)
    above = st.floats(min_value=_high(field), exclude_min=True)
    return table, row, field, draw(below if field.maximum is None else st.one_of(below, above))


def is_figure(field: Field) -> bool:
    """Return whether a field is a number with a least value."""
    return field.minimum is not None and not pa.types.is_boolean(field.type)


@given(rows_and_a_bad_cell())
def test_bounds_decide(drawn: tuple[Table, dict[str, Any], Field, float]) -> None:
    """Any row within its bounds is read as it is; one figure outside is refused with file, row and column."""
    table, row, field, number = drawn
    path = Path("own.csv")
    ((_, _, values),) = typed_rows(path, csv_of([row]), table)
    numbers = {f.name: row[f.name] for f in table.fields if is_figure(f)}
    assert {name: values[name] for name in numbers} == numbers
    with refused(ErrorCode.BAD_ROW, path, f"row 3, column {field.name}: '{number!r}' "):
        typed_rows(path, csv_of([row, row | {field.name: number}]), table)


@given(st.sampled_from(sorted(EXAMPLES)), st.integers(1, 10**6), st.sampled_from(["k", "M"]))
def test_a_written_unit_is_its_factor(unit: Unit, number: int, prefix: str) -> None:
    """The examples of each unit are read, and a prefix is a thousand or a million."""
    for example in EXAMPLES[unit].replace(" or ", ", ").split(", "):
        assert parse_quantity(example, unit) > 0
    symbol = {"bytes/s": "B/s", "bytes": "B", "bytes/token": "B/token", "FLOP/s": "FLOP/s", "W": "W"}[unit]
    assert parse_quantity(f"{number} {prefix}{symbol}", unit) == number * {"k": 1000, "M": 10**6}[prefix]
    # 400e9 / 8 = 50e9; 60 x 2^30 = 64,424,509,440
    assert (parse_quantity("400 Gb/s", "bytes/s"), parse_quantity("60GiB/s", "bytes/s")) == (50e9, 64_424_509_440)


def test_kappa_never_writes_what_it_cannot_read(user: Path) -> None:
    """A row above the peak is refused before it is written."""
    with refused(ErrorCode.BAD_ROW, "row 2, column bf16_flop_per_s: 2e"):
        put_rows(user, "measured", [MEASURED | {"bf16_flop_per_s": 2e15}], ("accelerator", "link"))
    assert list(user.iterdir()) == []


def test_a_measured_machine_may_be_new(user: Path) -> None:
    """H100 SXM is h100-sxm; a machine that no table knows keeps its name."""
    row = kept(user, "measured", accelerator="H100 SXM", link="Our Box")
    assert (row["accelerator"], row["link"]) == ("h100-sxm", "Our Box")


def test_a_day_to_come(user: Path) -> None:
    """A source cannot have been read the day after tomorrow."""
    today = dt.datetime.now(dt.UTC).date()
    assert kept(user, "links", retrieved=today.isoformat())
    put(user, "links", retrieved=(today + dt.timedelta(days=2)).isoformat())
    error(user, ErrorCode.BAD_ROW, "row 2, column retrieved: ", "still to come")


GOOD_LINK = csv_of([GOOD["links"]])


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"", ErrorCode.BAD_ROW, "row 1, column all: the file is empty; the columns have to be link, kind"),
        (GOOD_LINK.replace(b"source", b"origin"), ErrorCode.BAD_ROW,
         "row 1, column origin, source: missing 'source'; unknown 'origin'; "),
        (GOOD_LINK.replace(b"source", b"kind"), ErrorCode.BAD_ROW,
         "column kind, source: missing 'source'; twice 'kind'; "),
        (GOOD_LINK.replace(b",", b";"), ErrorCode.BAD_ROW, "with commas between them"),
        (GOOD_LINK.replace(b"our own", b"our, own"), ErrorCode.BAD_ROW,
         "row 2, column source: 7 cells where the header has 6"),
        (GOOD_LINK.replace(b"our own box", b'"our" own'), ErrorCode.BAD_FILE, "row 2: "),
        (GOOD_LINK.decode().encode("utf-16"), ErrorCode.NOT_TEXT, "row 1: "),
        (GOOD_LINK.replace(b"own", b"\xff"), ErrorCode.NOT_TEXT, "row 2: "),
        (GOOD_LINK + GOOD_LINK.splitlines()[1].upper().replace(b"PCIE,3E10", b"pcie,3e10").replace(b"HIGH", b"high"),
         ErrorCode.BAD_ROW, "row 3, column link: the same as in row 2"),
        (b"x" * (4 * 2**20 + 1), ErrorCode.BAD_FILE, "it is longer than 4,194,304 bytes"),
        (GOOD_LINK.replace(b"own", b"o" * 200_000), ErrorCode.BAD_FILE, "row 2: field larger than field limit"),
    ],
    ids=lambda part: part if isinstance(part, str) else "bytes",
)  # fmt: skip
def test_an_odd_file(user: Path, data: bytes, code: ErrorCode, line: str) -> None:
    """Whatever the bytes are, one line says where they are wrong."""
    (user / "links.csv").write_bytes(data)
    error(user, code, user / "links.csv", line)


def test_a_log_read_before_changes_nothing(user: Path) -> None:
    """Reading a log raises the limit of a cell for the whole process: rows are held to their own, and it comes back."""
    (user / "links.csv").write_bytes(b"link,kind\n" + b"x" * 200_000 + b",pcie\n")
    before = csv.field_size_limit(10**9)
    try:
        error(user, ErrorCode.BAD_FILE, user / "links.csv", "row 2: field larger than field limit")
        assert csv.field_size_limit() == 10**9
    finally:
        csv.field_size_limit(before)


def test_what_spreadsheets_write(user: Path) -> None:
    """A byte order mark, Windows line ends and empty lines are read; a header adds no row."""
    header, row = GOOD_LINK.splitlines()
    (user / "links.csv").write_bytes(b"\xef\xbb\xbf" + header + b"\r\n\r\n" + row + b"\r\n")
    assert load_reference("links", user=user)["link"].to_pylist()[-1] == "our-link"
    (user / "links.csv").write_bytes(header)
    assert load_reference("links", user=user).equals(load_reference("links"))


def test_what_is_no_file(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a broken link, a file in the place of the folder, and what may not be read."""
    path = user / "links.csv"
    path.mkdir()
    error(user, ErrorCode.NOT_READABLE, path, "no file")
    path.rmdir()
    path.symlink_to(user / "gone")
    error(user, ErrorCode.NOT_READABLE, path, "No such file")
    path.unlink()
    (tmp_path / "file").write_text("link\n", "utf8")
    error(tmp_path / "file", ErrorCode.NOT_READABLE, "Not a directory")
    put(user, "links")
    opened = Path.open

    def denied(at: Path, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - it stands in for Path.open
        if user in (at.parent, at):
            raise PermissionError(13, "Permission denied")
        return opened(at, *arguments, **options)

    monkeypatch.setattr(Path, "open", denied)
    error(user, ErrorCode.NOT_READABLE, path, "Permission denied")
    monkeypatch.setattr(Path, "iterdir", denied)
    error(user, ErrorCode.NOT_READABLE, "Permission denied")


@pytest.mark.parametrize("name", ["Links.csv", "links.CSV", "link.csv", "paper_links.csv"])
def test_a_file_of_another_name(user: Path, name: str) -> None:
    """It would be lost in silence; hidden files and notes may lie there."""
    for other in (".links.csv", "._links.csv", "README.txt", "links.csv~"):
        (user / other).write_text("?", "utf8")
    assert load_reference("links", user=user).equals(load_reference("links"))
    (user / name).write_text("link\n", "utf8")
    assert "call it one of models" in error(user, ErrorCode.MISNAMED_FILE, user / name)


def test_an_exact_name_wins() -> None:
    """Two names that differ only in case are both found, and neither is guessed."""
    both = ["our-GPU", "OUR-gpu"]
    assert [names.find_name(name, both) for name in (*both, "our-gpu", "other")] == [*both, None, None]
    assert names.nearest_names("zzz", ["a", "b"]) == ["a", "b"]


@pytest.mark.parametrize("name", sorted(set(REFERENCE) - {"published"}))
def test_every_figure_has_bounds_and_their_reason(name: str) -> None:
    """Only the paper's figures, which are of every kind, share one column without bounds."""
    numbers = [f for f in REFERENCE[name].fields if pa.types.is_floating(f.type) or pa.types.is_integer(f.type)]
    assert [f.name for f in numbers if f.minimum is None or f.maximum is None or not f.why_bounds] == []


def test_every_unit_is_used() -> None:
    """The closed set has no unit that no column has; users extend some of the tables."""
    tables = {**REFERENCE, **TABLES}
    assert {field.unit for table in tables.values() for field in table.fields} == set(get_args(Unit))
    assert set(USER_TABLES) < set(REFERENCE)


def test_a_row_of_no_model_has_no_shape() -> None:
    """Nothing about layers is asked of a link."""
    assert contradiction({"peak_bytes_per_s": 1.0, "sustained_bytes_per_s": None}) is None
