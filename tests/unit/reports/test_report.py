"""The report of a small warehouse built by hand: what stands on the page, in the Markdown and in the figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.hardware.boundness import boundness
from pipelines.hardware.design_questions import design_questions
from pipelines.hardware.machines import read_sources
from pipelines.hardware.ratios import hardware_tables
from reports.data import read_report_data
from reports.format import percent
from reports.report import write_report
from warehouse.database.aggregates import percentiles_of, summary_of
from warehouse.database.build import build_database
from warehouse.database.engine import read_only
from warehouse.declared.formats import number
from warehouse.declared.tables import TABLES, TURNS
from warehouse.hardware_rows.rows import load_reference

MARK = "sample: generated text"
TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLATFORM = "h100-sxm + pcie5-x16"
# (K, T, output) of a session's turns. kappa_ratio: 0, 20, 100, 1000.
CHAT = [(0, 10, 5), (200, 10, 5), (1000, 10, None), (1000, 1, 7)]
# One of 100 turns is longer than 131,072 tokens, two are longer than 40,960.
LONG = [(140_000, 10, None), (50_000, 10, None)] + [(1000, 10, None)] * 98
Turns = list[tuple[int, int, int | None]]


@dataclass
class Made:
    """What a small warehouse is made of: turns by workload and tokenizer, records of each workload, and rejects.

    `chat` holds the turns counted so; `is_asked` says whether the design questions are answered.
    """

    turns: dict[tuple[str, str], Turns]
    chat: dict[tuple[str, str], Turns] = field(default_factory=dict)
    is_asked: bool = False
    is_sample: bool = False
    records: int = 2
    rejects: list[dict[str, Any]] = field(default_factory=list)


def turns_of(workload: str, tokenizer: str, turns: Turns, counting: str = "text") -> pa.Table:
    """Return rows of `turns`, all in one session."""
    return TURNS.rows(
        [
            {
                "workload": workload, "tokenizer": tokenizer, "counting": counting, "reuse": "history",
                "session_id": "s", "turn_index": i, "cached_tokens": k, "prefill_tokens": t,
                "output_tokens": output, "kappa_ratio": k / t, "is_first_turn": i == 0,
            }
            for i, (k, t, output) in enumerate(turns)
        ]
    )  # fmt: skip


def source_row(workload: str, made: Made) -> dict[str, Any]:
    """Return a row of `sources`."""
    return {
        "workload": workload, "repo_id": "someone/set", "revision": "a" * 40, "path": "file.json", "bytes": 10,
        "sha256": "b" * 64, "records": made.records, "licence": "none stated", "fetched_at": TIME,
        "is_sample": made.is_sample,
    }  # fmt: skip


def named_rows(made: Made) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that say where the turns come from."""
    tokenizers = sorted({tokenizer for _, tokenizer in made.turns})
    return {
        "sources": [source_row(workload, made) for workload in sorted({workload for workload, _ in made.turns})],
        "tokenizers": [
            {
                "tokenizer": name, "repo_id": "someone/model", "revision": "c" * 40, "path": "tokenizer.json",
                "sha256": "d" * 64, "fingerprint": "e" * 64, "engine": "fastokens", "engine_version": "1.2.3",
                "max_context_tokens": 4096,
            }
            for name in tokenizers
        ],
        "generations": [
            {
                "generation": 7, "run_id": "run-1", "started_at": TIME, "finished_at": TIME,
                "code_version": "0.1.0+abc", "workload": workload, "revision": "a" * 40, "tokenizer": tokenizer,
                "fingerprint": "e" * 64,
            }
            for workload, tokenizer in made.turns
        ],
        "rejects": made.rejects,
    }  # fmt: skip


def build(folder: Path, made: Made) -> Path:
    """Write every table as Parquet, as the steps would, and build the database from the files."""
    hardware, headlines = hardware_tables(), load_reference("headlines")
    files: dict[str, list[Path]] = {name: [] for name, table in TABLES.items() if not table.is_view}

    def put(name: str, data: pa.Table) -> Path:
        path = folder / f"{name}-{len(files[name])}.parquet"
        pq.write_table(TABLES[name].conform(data), path)
        files[name].append(path)
        return path

    for name, rows in named_rows(made).items():
        put(name, TABLES[name].rows(rows))
    for name in ("models", "accelerators", "links", "platforms", "kappa_crit"):
        put(name, hardware[name])
    put("published", load_reference("published"))
    put("headlines", headlines)
    series = [(key, "text", turns) for key, turns in made.turns.items()]
    for (workload, tokenizer), counting, turns in series + [(key, "chat", turns) for key, turns in made.chat.items()]:
        table = turns_of(workload, tokenizer, turns, counting)
        path = put("turns", table)
        put("percentiles", percentiles_of(path))
        put("summary", summary_of(path, special_token_messages=0, is_sample=made.is_sample))
        batch = {name: table[name].to_numpy() for name in ("cached_tokens", "prefill_tokens")}
        names = {"workload": workload, "tokenizer": tokenizer, "counting": counting, "reuse": "history"}
        if turns:
            put("boundness", boundness([batch], **names, hardware=hardware, headlines=headlines))
        if made.is_asked:
            models = [name for name in headlines["model"].to_pylist() if name]
            put("design_questions", design_questions([batch], **names, sources=read_sources(), models=models))
    build_database(folder / "warehouse.duckdb", files)
    return folder / "warehouse.duckdb"


def folder_in(path: Path, name: str) -> Path:
    """Return a new folder."""
    (path / name).mkdir()
    return path / name


@dataclass
class Report:
    """A written report with the database that it was made from."""

    database: Path
    folder: Path
    files: list[Path]

    @property
    def html(self) -> str:
        """The page."""
        return (self.folder / "report.html").read_text("utf8")

    @property
    def markdown(self) -> str:
        """The Markdown file."""
        return (self.folder / "report.md").read_text("utf8")

    def grid(self, name: str) -> list[dict[str, str]]:
        """Return the page's table of that name, a dictionary a row."""
        reader = Tables()
        reader.feed(self.html)
        head, *rows = reader.tables[name]
        return [dict(zip(head, row, strict=True)) for row in rows]

    def svg_texts(self, name: str) -> list[str]:
        """Return every text of a figure's SVG."""
        root = ET.fromstring((self.folder / "figures" / f"{name}.svg").read_bytes())  # noqa: S314 - our own file
        texts = root.iter("{http://www.w3.org/2000/svg}text")
        return [" ".join("".join(element.itertext()).split()) for element in texts]


class Tables(HTMLParser):
    """Reads the tables of a page by the id of their block, and notes every tag with its attributes."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.captions: list[str] = []
        self._rows: list[list[str]] = []
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a table, a row or a cell."""
        values = dict(attrs)
        self.tags.append((tag, values))
        if tag == "div" and str(values.get("class", "")).startswith("table"):
            self._rows = self.tables.setdefault(str(values["id"]), [])
        if tag == "tr":
            self._rows.append([])
        if tag in ("th", "td"):
            self._rows[-1].append("")
        if tag in ("caption", "figcaption"):
            self.captions.append("")
        if tag in ("th", "td", "caption", "figcaption"):
            self._open = tag

    def handle_endtag(self, tag: str) -> None:
        """Close a cell."""
        if tag == self._open:
            self._open = ""
            if tag in ("th", "td"):
                self._rows[-1][-1] = " ".join(self._rows[-1][-1].split())

    def handle_data(self, data: str) -> None:
        """Add text to the open cell or caption."""
        if self._open in ("th", "td"):
            self._rows[-1][-1] += data
        elif self._open:
            self.captions[-1] += data


Make = Callable[[Made], Report]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Return a function that builds a warehouse and writes its report."""

    def making(made: Made) -> Report:
        folder = tmp_path_factory.mktemp("home")
        database = build(folder, made)
        return Report(database, folder / "report", write_report(database, folder / "report"))

    return making


HOSTILE = "<script>alert(1)</script>"
HOSTILE_ID = "a|b](https://evil.example) ![x](y) <img src=x onerror=alert(1)> `_c_`\n# d"


@pytest.fixture(scope="module")
def real(make: Make) -> Report:
    """Return the report of a part of two data sets, one counted by two tokenizers, with hostile rejects."""
    reject = {
        "workload": "sharegpt", "path": "file.json", "record": 1, "level": "record", "session_id": HOSTILE_ID,
        "turn_index": None, "reason": "unknown_role", "detail": HOSTILE,
    }  # fmt: skip
    turns: dict[tuple[str, str], Turns] = {
        ("sharegpt", "llama-3.1"): CHAT,
        ("sharegpt", "qwen3"): CHAT,
        ("narrativeqa", "llama-3.1"): LONG,
        ("narrativeqa", "qwen3"): LONG,
    }
    return make(Made(turns, rejects=[reject, reject | {"record": 2}]))


@pytest.fixture(scope="module")
def sample(make: Make) -> Report:
    """Return the report of generated text."""
    return make(Made({("sharegpt", "llama-3.1"): CHAT}, is_sample=True))


def test_page_is_one_file_that_fetches_nothing(real: Report) -> None:
    """The page has no script and no address to fetch from; every figure is drawn in it."""
    reader = Tables()
    reader.feed(real.html)
    addresses = [
        value for _, attrs in reader.tags for key, value in attrs.items() if key in ("src", "href", "xlink:href")
    ]
    assert addresses
    assert [address for address in addresses if not str(address).startswith(("#", "data:"))] == []
    forbidden = {"script", "img", "iframe", "object", "embed", "base"}
    assert forbidden.isdisjoint(tag for tag, _ in reader.tags)
    assert re.findall(r"url\((?!#)|@import|\son\w+=", real.html.replace("onerror=alert(1)", "")) == []
    figures = [path.stem for path in real.files if path.suffix == ".svg"]
    # one against kappa_crit, one heat map, one distribution a workload
    assert len(figures) == 4
    assert [attrs.get("id") for tag, attrs in reader.tags if tag == "figure"] == figures


def test_ids_in_the_page_are_unique(real: Report) -> None:
    """Figures that are inlined side by side do not take each other's clip paths and hatches."""
    reader = Tables()
    reader.feed(real.html)
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"url\(#([^)]+)\)", real.html)) | set(re.findall(r'href="#([^"]+)"', real.html))
    assert used
    assert used <= set(ids)


def test_every_figure_is_there_as_png_and_svg(real: Report) -> None:
    """Each figure has both files, and the Markdown links to files that are there."""
    names = {path.name for path in real.files}
    for name in (
        "kappa_ratio_vs_kappa_crit",
        "memory_bound_turns",
        "distribution_sharegpt",
        "distribution_narrativeqa",
    ):
        assert {f"{name}.png", f"{name}.svg"} <= names
    links = re.findall(r"\]\((figures/[^)]+)\)", real.markdown)
    # two links, to PNG and SVG, for each of four figures
    assert len(links) == 8
    assert all((real.folder / link).is_file() for link in links)
    assert (real.folder / "figures" / "memory_bound_turns.png").read_bytes().startswith(b"\x89PNG")


def test_first_sentence_is_computed_from_the_tables(real: Report) -> None:
    """The range over the models is the share of turns above their kappa_crit on the reference platform."""
    # kappa_ratio 0, 20, 100, 1000; the lowest kappa_crit is 7.34 (deepseek-v3, fp8, on 16), under 2n: 3 of 4 are above.
    # In blocks of 256 K is 0, 0, 768, 768 and T 10, 210, 242, 233: the highest ratio is 3.3, and none is above.
    sentence = re.search(r'<p class="result">(.*?)</p>', real.html)
    assert sentence
    text = sentence[1].replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith(f"For 8 headline models on {PLATFORM} (1 to 16 GPUs, the least on which each fits, ")
    assert "over cost models and blocks of 1, 16 and 256 tokens" in text
    assert "0 to 75 % of the turns of sharegpt (depends on: cost model and block for 4; " in text
    # narrativeqa: 98 turns of ratio 100, one of 5,000, one of 14,000. Above 7.34: all. In blocks of 256 the 98 have
    # 768 / 242 = 3.2, the two 49,920 / 90 = 555 and 139,776 / 234 = 597: 2 of 100.
    # Two of 100 turns exceed the 40,960 tokens of the four qwen3 models; one of 100 is not more than 1 %.
    assert "2 to 100 % of the turns of narrativeqa (hypothetical for 4 of the 8 models)" in text


def test_first_table_holds_medians(real: Report) -> None:
    """The row of a workload has its medians and the range of memory bound turns, on both bases."""
    row = next(row for row in real.grid("result") if (row["workload"], row["tokenizer"]) == ("sharegpt", "llama-3.1"))
    assert (row["sessions"], row["turns"]) == ("1", "4")
    # T 1, 10, 10, 10; K 0, 200, 1000, 1000 -> (200 + 1000) / 2; reused ratios 20, 100, 1000; 2200 / 31 = 70.97
    assert (row["T p50 (tokens)"], row["K p50 (tokens)"]) == ("10", "600")
    assert (row["kappa ratio p50, reused turns"], row["pooled kappa ratio"]) == ("100", "70.97")
    # deepseek-v3 on 16, 7.34: 3 of 4; 405b on 16, 78.6: 2 of 4. On paper 70b 14.3: 3 of 4, 405b 48.3: 2 of 4
    assert row[f"memory bound turns, {PLATFORM} (physical)"] == "50 to 75 %"
    assert row[f"memory bound turns, {PLATFORM} (paper)"] == "50 to 75 %"


def test_percentile_tables_equal_the_warehouse(real: Report) -> None:
    """Every cell of every percentile table is the value of `percentiles`."""
    with read_only(real.database) as connection:
        rows = connection.sql("SELECT * FROM percentiles").to_arrow_table().to_pylist()
    shown = {}
    for metric in ("kappa_ratio", "cached_tokens", "prefill_tokens", "context_tokens", "output_tokens"):
        for cells in real.grid(f"percentiles-{metric}"):
            key = (metric, cells["workload"], cells["tokenizer"], cells["population"], cells["block tokens"])
            shown.update(
                {(*key, name): cell for name, cell in cells.items() if name.startswith("p") and name[1].isdigit()}
            )
    expected = {
        (r["metric"], r["workload"], r["tokenizer"], r["population"], str(r["block_tokens"]), f"p{r['percentile']:g}"):
            number(r["value"])
        for r in rows
        if r["block_tokens"] == 1 or (r["metric"], r["population"]) == ("kappa_ratio", "reused")
    }  # fmt: skip
    # sharegpt has five metrics, narrativeqa four: no reply is a document's
    assert len(expected) == 2 * 10 * ((5 + 4) * 2 + 2 * 2)
    assert shown == expected
    # reused ratios 20, 100, 1000, the middle one
    assert shown["kappa_ratio", "sharegpt", "llama-3.1", "reused", "1", "p50"] == "100"


@pytest.mark.parametrize("basis", ["physical", "paper"])
def test_verdict_is_hypothetical_exactly_above_one_percent(real: Report, basis: str) -> None:
    """A verdict is called hypothetical where over_context_turn_share > 0.01, and at 0.01 it is not."""
    query = f"""
        SELECT workload, model, over_context_turn_share > 0.01 AS is_hypothetical FROM boundness
        WHERE basis = '{basis}' AND accelerator = 'h100-sxm' AND link = 'pcie5-x16' AND kv_dtype = 'bf16'
          AND cost_model = '2n' AND block_tokens = 1
    """  # noqa: S608 - two words
    with read_only(real.database) as connection:
        rows = connection.sql(query).to_arrow_table().to_pylist()
    expected = {(row["workload"], row["model"]): row["is_hypothetical"] for row in rows}
    verdicts = {
        (row["workload"], row["model"].removesuffix(" (proxy)")): row["verdict"]
        for row in real.grid(f"verdicts-{basis}")
    }
    assert {key: "hypothetical" in verdict for key, verdict in verdicts.items()} == {
        key: expected[key] for key in verdicts
    }
    # 1 of 100 turns beyond 131,072: not more than 1 %. 2 of 100 beyond 40,960: more.
    assert verdicts["narrativeqa", "llama-3.1-70b"] == "mostly memory bound"
    assert verdicts["narrativeqa", "qwen3-235b-a22b"] == "hypothetical: mostly memory bound"


def test_hypothetical_models_are_named_and_starred(real: Report) -> None:
    """The page names workload, share and models, and stars the cells of the heat map and of its tables."""
    text = real.html.replace("\N{NO-BREAK SPACE}", " ")
    names = "qwen3-8b, qwen3-32b, qwen3-30b-a3b and qwen3-235b-a22b"
    # 2 of 100 turns
    assert f"Hypothetical for narrativeqa: 2.0 % of its turns are longer than the context of {names}." in text
    assert "Hypothetical for sharegpt" not in text
    cells = {row["model"]: row for row in real.grid("bound-narrativeqa")}
    assert cells["qwen3-8b"][f"{PLATFORM} (physical)"] == "100*"
    assert cells["llama-3.1-8b"][f"{PLATFORM} (physical)"] == "100"
    # 7 platforms, two of the four qwen3 models without inputs on the paper's basis -> 26 starred cells
    starred = [text for text in real.svg_texts("memory_bound_turns") if re.fullmatch(r"[<>]?\d+\*", text)]
    assert len(starred) == 4 * 6 + 2


def test_verdict_row_equals_boundness(real: Report) -> None:
    """The row of a model repeats its row of `boundness`."""
    rows = real.grid("verdicts-physical")
    row = next(row for row in rows if (row["workload"], row["model"]) == ("sharegpt", "llama-3.1-70b"))
    # kappa_crit 43.04; ratios 0, 20, 100, 1000: 2 of 4 turns; tokens 10, 210, 1010, 1001: 2011 of 2231 = 90.1 %
    assert (row["kappa crit"], row["memory bound turn share"]) == ("43.04", "50.0 %")
    assert row["memory bound token share"] == "90.1 %"
    # in units of a computed token: t_PCIe = 2200 / 43.04 = 51.1, t_GPU = 31 -> 51.1 / 82.1 = 62.2 %
    assert row["transfer time share"] == "62.2 %"
    assert row["verdict"] == "mostly compute bound"


def test_proxies_are_marked(real: Report) -> None:
    """A model that has no counts of its own vocabulary is marked in tables and figures."""
    models = {row["model"]: row["tokenizer"] for row in real.grid("kappa-crit")}
    assert models["deepseek-v3 (proxy)"] == "llama-3.1"
    assert "llama-3.1-70b" in models
    for figure in ("kappa_ratio_vs_kappa_crit", "memory_bound_turns"):
        assert "deepseek-v3 (proxy)" in real.svg_texts(figure)
    assert "Models marked (proxy) have a vocabulary that is not counted" in real.html


def test_kappa_crit_stands_on_both_bases(real: Report) -> None:
    """Both bases of a platform are side by side, and what has no inputs is a dash."""
    rows = {row["model"]: row for row in real.grid("kappa-crit")}
    # paper: 420,000 FLOP/byte x 34e-6 byte/FLOP = 14.28, both as printed
    assert rows["llama-3.1-70b"][f"{PLATFORM} (paper)"] == "14.28"
    # physical: 141.1e9 FLOP / 327,680 bytes x 54.4e9 / (989.5e12 x 0.55) = 43.04
    assert rows["llama-3.1-70b"][f"{PLATFORM} (physical)"] == "43.04"
    assert rows["qwen3-8b"][f"{PLATFORM} (paper)"] == "-"


def test_page_says_what_k_is_and_on_what_a_headline_stands(real: Report) -> None:
    """Upper bound, cost model and basis are said in plain words, on the page and in Markdown."""
    for text in (real.html, real.markdown):
        assert "K is the upper bound of reuse: everything said before is taken as cached in host memory" in text
        assert "nothing as still in GPU memory, nothing as evicted" in text
        assert "Basis physical, cost_model 2n (t_GPU is 2 x active parameters" in text
        assert "Figures show the counts of llama-3.1; the tables hold those of qwen3 too." in text


def test_axes_carry_units(real: Report) -> None:
    """The labels of the axes come from the declared fields, with units."""
    texts = real.svg_texts("distribution_sharegpt")
    assert {"prefill tokens (T)", "cached tokens (K)", "kappa ratio (K / T)", "% of all turns"} <= set(texts)
    assert texts.count("log scale") == 3
    against = " ".join(real.svg_texts("kappa_ratio_vs_kappa_crit"))
    assert "kappa ratio (K / T) above, kappa crit (kappa_m x kappa_hw) here; no unit, log scale" in against
    assert "(% of all turns)" in against
    assert "% of all turns" in " ".join(real.svg_texts("memory_bound_turns"))


def test_curves_are_named_and_first_turns_stand_apart(real: Report) -> None:
    """Each curve has its name beside it; first turns have a legend entry, and those without a place are counted."""
    assert {"sharegpt", "narrativeqa"} <= set(real.svg_texts("kappa_ratio_vs_kappa_crit"))
    texts = [text.replace("\N{NO-BREAK SPACE}", " ") for text in real.svg_texts("distribution_sharegpt")]
    assert {"first turns", "later turns"} <= set(texts)
    # the only first turn has K = 0: all of it is off the axes of K and of kappa_ratio
    assert texts.count("100 % of first turns") == 2


def test_hostile_text_stays_text(real: Report) -> None:
    """Markup in a session id or a detail is shown, never interpreted, on the page and in Markdown."""
    (row,) = real.grid("rejects")
    assert row["first: detail"] == HOSTILE
    assert row["first: session id"].startswith("a|b](https://evil.example) ![x](y) <img src=x onerror=alert(1)>")
    assert row["left out"] == "2"
    assert HOSTILE not in real.html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in real.html
    assert re.findall(r"[<>]", real.markdown.replace("\n> ", "\n")) == []
    line = next(line for line in real.markdown.splitlines() if "alert" in line)
    # seven columns and the count: eight cells, nine bars
    assert line.count("|") == 9
    assert "https://" not in line
    assert re.findall(r"(?<!\\)[\]\[`*]|(?<!\\)_c", line) == []


def test_sample_is_marked_everywhere(sample: Report) -> None:
    """Page, every caption, every figure and the Markdown say that the text was generated."""
    reader = Tables()
    reader.feed(sample.html)
    assert len(reader.captions) > 10
    assert [caption for caption in reader.captions if MARK not in caption] == []
    assert f"({MARK})</title>" in sample.html
    assert f'<p class="mark">{MARK}</p>' in sample.html
    assert "Sample: generated text, no result about the data sets." in sample.html
    for figure in ("kappa_ratio_vs_kappa_crit", "memory_bound_turns", "distribution_sharegpt"):
        assert any(MARK in text for text in sample.svg_texts(figure))
    titles = [line for line in sample.markdown.splitlines() if line.startswith(("**", "!["))]
    assert [line for line in titles if MARK not in line.lower()] == []


def test_real_data_carries_no_mark(real: Report) -> None:
    """Nothing of the real data sets calls itself a sample."""
    assert MARK not in real.html.lower()
    assert MARK not in real.markdown.lower()
    for path in real.files:
        if path.suffix == ".svg":
            assert MARK not in path.read_text("utf8")


def test_part_of_a_set_and_sample_are_not_compared(real: Report, sample: Report) -> None:
    """Without the full set a published figure stands beside ours without a ratio."""
    for report in (real, sample):
        rows = report.grid("published-sharegpt")
        row = next(row for row in rows if row["quantity"] == "ShareGPT: new tokens, mean")
        # (10 + 10 + 10 + 1) / 4 = 7.75
        assert (row["published"], row["ours"]) == ("82", "7.75")
        assert (row["ratio"], row["comparison"]) == ("-", "not compared: not the full set")
        assert {row["ratio"] for row in rows} == {"-"}
    assert "Not compared: narrativeqa and sharegpt, since a part of the set" in real.html
    assert "Not compared: sharegpt, since the text was generated" in sample.html


def test_hardware_figures_are_compared(real: Report) -> None:
    """Figures of hardware need no data set: those asserted are met or not, the others stand for orientation."""
    rows = {row["quantity"]: row for row in real.grid("published-hardware")}
    row = rows["kappa_crit of llama-3.1-70b on h100-sxm over pcie5-x16"]
    # 14.28 / 14.3 = 0.9986
    assert (row["published"], row["ours"], row["ratio"]) == ("14.3", "14.28", "0.9986")
    assert row["comparison"] == "met within 1 %"
    orientation = [row["comparison"] for name, row in rows.items() if "measured on one machine" in name]
    assert set(orientation) == {"for orientation: not asserted"}


def test_full_set_is_compared(make: Make) -> None:
    """With every record read, a figure within its tolerance is met and another is not."""
    report = make(Made({("sharegpt", "llama-3.1"): [(11_652, 84, 3), (11_652, 84, 3)]}, records=90_665))
    rows = {row["quantity"]: row for row in report.grid("published-sharegpt")}
    # T mean 84 of 84.1: within 5 %. T p50 84 of 19: not within 6 %. 84 / 82 = 1.024, not asserted.
    assert rows["ShareGPT: new tokens, mean, counted independently"]["comparison"] == "met within 5 %"
    assert rows["ShareGPT: new tokens, p50, counted independently"]["comparison"] == "not met within 6 %"
    assert rows["ShareGPT: new tokens, mean"]["comparison"] == "for orientation: not asserted"
    assert rows["ShareGPT: new tokens, mean"]["ratio"] == "1.024"
    assert "Not compared" not in report.html


def test_sources_tokenizers_and_generation_are_named(real: Report) -> None:
    """What the numbers come from is on the page in full."""
    assert {row["sha256"] for row in real.grid("files")} == {"b" * 64}
    assert {row["revision"] for row in real.grid("files")} == {"a" * 40}
    assert {(row["repo id"], row["licence"]) for row in real.grid("sources")} == {("someone/set", "none stated")}
    assert [row["tokenizer"] for row in real.grid("tokenizers")] == ["llama-3.1", "qwen3"]
    assert {row["sha256"] for row in real.grid("tokenizers")} == {"d" * 64}
    generations = real.grid("generations")
    assert {(row["generation"], row["code version"], row["run id"]) for row in generations} == {
        ("7", "0.1.0+abc", "run-1")
    }
    assert {row["finished at (UTC)"] for row in generations} == {"2026-01-02 03:04:05"}


def test_same_database_gives_same_bytes(real: Report, tmp_path: Path) -> None:
    """Writing again gives every file byte for byte."""
    again = write_report(real.database, tmp_path)
    assert [path.relative_to(tmp_path) for path in again] == [path.relative_to(real.folder) for path in real.files]
    different = [a.name for a, b in zip(again, real.files, strict=True) if a.read_bytes() != b.read_bytes()]
    assert different == []


def test_the_last_bits_of_a_layout_change_nothing(
    real: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matplotlib's layout ends in other last bits in each process: figures are the same, to the byte."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 - slow to import

    execute = ConstrainedLayoutEngine.execute

    def shaken(engine: ConstrainedLayoutEngine, fig: Any) -> Any:  # noqa: ANN401 - Matplotlib's own
        margins = execute(engine, fig)
        for axes in fig.axes:
            axes._set_position([edge * (1 + 4e-16) for edge in axes.get_position(original=True).bounds])
        return margins

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", shaken)
    again = write_report(real.database, tmp_path)
    different = [a.name for a, b in zip(again, real.files, strict=True) if a.read_bytes() != b.read_bytes()]
    assert different == []


SUBSETS: dict[str, tuple[dict[tuple[str, str], Turns], str]] = {
    "one turn": ({("finqa", "llama-3.1"): [(100, 1, None)]}, "For 4 headline models"),
    # no turn is above any kappa_crit
    "nothing reused": ({("sharegpt", "llama-3.1"): [(0, 5, 1), (0, 7, 1)]}, "0 % of the turns of sharegpt"),
    "one tokenizer without proxies": ({("sharegpt", "qwen3"): CHAT}, "For 4 headline models"),
    "a replaced reply only": ({("sharegpt", "llama-3.1"): [(1, 1_000_000, 0)]}, "0 % of the turns of sharegpt"),
    "uneven tokenizers": (
        {("finqa", "qwen3"): CHAT, ("sharegpt", "llama-3.1"): CHAT, ("sharegpt", "qwen3"): CHAT},
        "For 8 headline models",
    ),
}


@pytest.mark.parametrize("name", SUBSETS)
def test_any_subset_is_reported(make: Make, name: str) -> None:
    """One turn, no reuse, one tokenizer, no output tokens or a hole in the grid of series: there is a whole report."""
    turns, expected = SUBSETS[name]
    report = make(Made(turns))
    assert expected in report.html.replace("\N{NO-BREAK SPACE}", " ")
    assert len(report.grid("result")) == len(turns)
    assert (report.folder / "figures" / "kappa_ratio_vs_kappa_crit.png").stat().st_size > 10_000
    has_output = any(output is not None for rows in turns.values() for _, _, output in rows)
    assert ('id="percentiles-output_tokens"' in report.html) == has_output


def test_series_without_turns_gives_a_page_without_figures(make: Make) -> None:
    """Where everything was left out the page says so, and still names the sources."""
    report = make(Made({("sharegpt", "llama-3.1"): []}))
    assert "No turn was joined with a model and a platform." in report.html
    assert [path.name for path in report.files] == ["report.html", "report.md"]
    assert {row["workload"] for row in report.grid("sources")} == {"sharegpt"}


def test_figures_show_the_tokenizer_that_counted_most(tmp_path: Path) -> None:
    """The shown tokenizer is the one that counted most workloads; the first by name where two did."""
    both: dict[tuple[str, str], Turns] = {("sharegpt", "llama-3.1"): CHAT, ("sharegpt", "qwen3"): CHAT}
    data = read_report_data(build(folder_in(tmp_path, "both"), Made(both)))
    assert (data.tokenizer, data.counting) == ("llama-3.1", "text")
    more = read_report_data(build(folder_in(tmp_path, "more"), Made(both | {("finqa", "qwen3"): CHAT})))
    assert more.tokenizer == "qwen3"
    assert str(more.reference) == f"{PLATFORM} (physical)"


def test_bins_hold_every_turn(real: Report) -> None:
    """Histograms lose no turn: bins and zeros add up to the turns, and a bin's edges hold its values."""
    data = read_report_data(real.database)

    def total(metric: str, kinds: Iterable[bool]) -> int:
        return sum(data.histograms["sharegpt", metric, kind].total for kind in kinds)

    for metric in ("cached_tokens", "prefill_tokens", "kappa_ratio"):
        assert total(metric, (True, False)) == 4
        assert total(metric, (True,)) == 1
    later = data.histograms["sharegpt", "kappa_ratio", False]
    # 20 bins to a factor of ten: log10(20) x 20 = 26.02, log10(100) x 20 = 40, log10(1000) x 20 = 60
    assert later.bins.tolist() == [26, 40, 60]
    assert data.histograms["sharegpt", "kappa_ratio", True].zeros == 1


@pytest.fixture(scope="module")
def asked(make: Make) -> Report:
    """Return the report of a workload counted both ways, with answers to the design questions."""
    # By chat ten more tokens come with each request: ratios 0, 210 / 20, 1020 / 20, 1030 / 11.
    chat: Turns = [(0, 20, 5), (210, 20, 5), (1020, 20, None), (1030, 11, 7)]
    return make(Made({("sharegpt", "llama-3.1"): CHAT}, chat={("sharegpt", "llama-3.1"): chat}, is_asked=True))


def test_design_questions_are_answered(asked: Report) -> None:
    """Figure and tables hold kappa_crit and the compute bound share of each variant, and say on what they stand."""
    rows = {(row["basis"], row["model"], row["variant"]): row for row in asked.grid("design-mla")}
    own = rows["physical", "llama-3.1-70b", "the model's own cache"]
    # kappa_crit 43.04; ratios 0, 20, 100, 1000: 2 of 4 turns are compute bound
    assert (own["kappa crit"], own["compute bound turns of sharegpt"]) == ("43.04", "50.0 %")
    # 327,680 bytes become 80 x (512 + 64) x 2 = 92,160: 43.04 x 3.556 = 153.0, and 100 is below it: 3 of 4
    latent = rows["physical", "llama-3.1-70b", "a latent of 512 + 64 in every layer"]
    assert (latent["kappa crit"], latent["compute bound turns of sharegpt"]) == ("153", "75.0 % (+25.0)")
    texts = asked.svg_texts("design_questions")
    assert {"design questions, basis physical, cost_model 2n", "sharegpt", "log scale", "8 bit", "4 bit"} <= set(texts)
    assert "deepseek-v3 (proxy)" in texts
    assert (asked.folder / "figures" / "design_questions.png").stat().st_size > 10_000
    assert "Asked of gb200 and h100-sxm" in asked.html
    assert "cost_model 2n, counting text. The tables hold basis paper too." in asked.html


def test_text_stands_beside_chat(asked: Report) -> None:
    """Medians of reused turns, template tokens and memory bound turns stand side by side; figures show text."""
    (row,) = asked.grid("text-chat")
    # reused: 20, 100, 1000 and 10.5, 51, 93.64
    assert (row["kappa ratio p50, reused turns, text"], row["kappa ratio p50, reused turns, chat"]) == ("100", "51")
    # K + T: 10, 210, 1010, 1001 become 20, 230, 1040, 1041: (10 + 20 + 30 + 40) / 4
    assert row["template tokens of a turn, mean"] == "25"
    # kappa_crit from 7.34 (deepseek-v3) to 78.6 (405b): by text 3 to 2 of 4 turns, by chat 3 to 1
    assert row[f"memory bound turns on {PLATFORM} (physical), text"] == "50 to 75 %"
    assert row[f"memory bound turns on {PLATFORM} (physical), chat"] == "25 to 75 %"
    chat = next(row for row in asked.grid("result") if row["counting"] == "chat")
    assert chat[f"memory bound turns, {PLATFORM} (physical)"] == "25 to 75 %"
    # the sentence is about text, over all cost models and blocks
    assert "0 to 75 % of the turns of sharegpt (" in asked.html.replace("\N{NO-BREAK SPACE}", " ")


def test_cost_models_stand_side_by_side(real: Report) -> None:
    """The reference platform's row of each cost model is its row of `boundness`, and the page says what each counts."""
    query = """
        SELECT workload, model, cost_model, memory_bound_turn_share AS share FROM boundness
        WHERE accelerator = 'h100-sxm' AND link = 'pcie5-x16' AND basis = 'physical' AND kv_dtype = 'bf16'
          AND block_tokens = 1
    """
    with read_only(real.database) as connection:
        rows = connection.sql(query).to_arrow_table().to_pylist()
    expected = {
        (row["workload"], row["model"], row["cost_model"]): " ".join(percent(row["share"]).split()) for row in rows
    }
    shown = {
        (row["workload"], row["model"].removesuffix(" (proxy)"), name): row[f"memory bound turns, {name}"]
        for row in real.grid("cost-models")
        for name in ("2n", "attention", "full")
    }
    # 8 headline models, 2 workloads, 3 cost models
    assert len(shown) == 48
    assert shown == {key: expected[key] for key in shown}
    # Reading 139e9 bytes of weights at 3.35e12 a second takes 42 ms, and 1,000 x 327,680 / 54.4e9 is 6.0 ms
    assert (shown["sharegpt", "llama-3.1-70b", "2n"], shown["sharegpt", "llama-3.1-70b", "full"]) == ("50.0 %", "0 %")
    for text in ("The headlines use cost_model 2n.", "for a batch of one", "attention of the new tokens over"):
        assert text in real.html


def test_printed_values_are_all_there(real: Report) -> None:
    """Every value of the view is on the page, with misses and measurements called so."""
    grids = [real.grid(name) for name in re.findall(r'id="(paper-[a-z]+)"', real.html)]
    rows = {row["quantity"]: row for grid in grids for row in grid}
    with read_only(real.database) as connection:
        values = connection.sql("SELECT * FROM paper_values").to_arrow_table().to_pylist()
    assert set(rows) == {row["quantity"] for row in values}
    row = rows["kappa_M of llama-3.1-405b (a misprint: the inputs give 1.57)"]
    # 2 x 405e9 / 516e3 = 1,569,767; / 1,420,000 - 1 = 10.5 %
    assert (row["printed"], row["reproduced"], row["residual"]) == ("1,420,000", "1,569,767", "+10.5 %")
    assert row["verdict"] == "miss: differs"
    assert row["why"].startswith("a miss: 2 x 405e9 / 516e3")
    measured = [row for row in rows.values() if row["why"].startswith("measured")]
    assert measured
    assert {row["verdict"].split(":")[0] for row in measured} == {"measurement, not asserted"}
    # of hardware, kappa_M of 70b and of 405b, and attention of three models, "about 10 %", are misses
    assert sum(row["verdict"].startswith("miss") for row in rows.values()) == 2 + 3
    assert f"The paper prints {len(values)} values that are kept here" in real.html


def test_without_answers_and_chat_their_sections_are_left_out(real: Report) -> None:
    """A warehouse without design questions and without chat has neither section, and no empty table."""
    assert "Design questions" not in real.html
    assert "Text against chat" not in real.html
    assert not (real.folder / "figures" / "design_questions.svg").exists()
    reader = Tables()
    reader.feed(real.html)
    assert [name for name, rows in reader.tables.items() if len(rows) < 2] == []
