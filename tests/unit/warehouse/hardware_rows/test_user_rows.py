"""A user's own rows: they appear everywhere, and what is wrong in them is told with file, row and column."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from assets.commands.cli import main
from pipelines.hardware.boundness import boundness
from pipelines.hardware.costs import Machine, is_known, kv_bytes, transfer_s
from pipelines.hardware.machines import named, read_sources
from pipelines.hardware.ratios import fitting_platforms, hardware_tables
from pipelines.vocab.specs import tokenizer_specs
from warehouse.declared.hardware_fields import CONFIDENCES
from warehouse.errors import ErrorCode
from warehouse.hardware_rows.files import waiting_rows
from warehouse.hardware_rows.reference_tables import REFERENCE, USER_TABLES
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder, user_rows_identity
from warehouse.hardware_rows.tokenizer_names import tokenizer_names
from warehouse.hardware_rows.user_rows import put_rows

SURE = {"retrieved": "2024-05-01", "confidence": "high", "source": "our own box"}
OURS: dict[str, list[dict[str, Any]]] = {
    "models": [
        {
            "model": "our-1b", "repo_id": "us/our-1b", "attention": "gqa",
            "total_params": 10**9, "active_params": 10**9,
            "layers": 10, "heads": 8, "kv_heads": 2, "head_dim": 64,
            "max_context_tokens": 32768, "tokenizer": "qwen3", "is_tokenizer_proxy": "false", "is_moe": "false",
            "layer_params": 9 * 10**8, "head_params": 10**8, **SURE,
        }
    ],
    "accelerators": [
        {"accelerator": "our-gpu", "dense_bf16_flop_per_s": 1e14, "hbm_bytes": 1e10, "hbm_bytes_per_s": 1e12, **SURE}
    ],
    "links": [{"link": "our-link", "kind": "pcie", "peak_bytes_per_s": 2e10, "sustained_bytes_per_s": 1e10, **SURE}],
    "platforms": [{"accelerator": "our-gpu", "link": "our-link", "basis": "physical", **SURE}],
    "headlines": [
        {"model": "our-1b", "accelerator": "", "link": "", "basis": ""},
        {"model": "", "accelerator": "our-gpu", "link": "our-link", "basis": "physical"},
    ],
}  # fmt: skip


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Return a home's folder of rows that names a model and a platform of its own."""
    folder = user_folder(tmp_path)
    folder.mkdir()
    for name, rows in OURS.items():
        write(folder / f"{name}.csv", rows)
    return folder


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows with their own columns and no more."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def spoil(user: Path, name: str, **cells: object) -> Path:
    """Change cells of the first row of one file."""
    path = user / f"{name}.csv"
    write(path, [OURS[name][0] | cells, *OURS[name][1:]])
    return path


def test_rows_are_joined_like_any_other(user: Path) -> None:
    """Model, platform and kappa_crit; columns that may be empty were left out of the files."""
    tables = hardware_tables(FOLDER, user)
    assert "our-1b" in tables["models"]["model"].to_pylist()
    rows = {
        (row["model"], row["kv_dtype"]): row["kappa_crit"]
        for row in tables["kappa_crit"].to_pylist()
        if row["accelerator"] == "our-gpu"
    }
    # 2e9 / 5120 x 1e10 / (0.55 x 1e14) = 390,625 x 1.81818e-4 = 71.0227
    assert rows["our-1b", "bf16"] == pytest.approx(71.0227, rel=1e-6)
    assert "llama-3.1-70b" in {model for model, _ in rows}
    assert is_known(read_sources(FOLDER, user).models["our-1b"], "full")


def test_headlines_get_blocks_and_cost_models(user: Path) -> None:
    """The user's headline is joined at every block size, under every cost model."""
    hardware, headlines = hardware_tables(FOLDER, user), load_reference("headlines", FOLDER, user)
    batch = {"cached_tokens": np.array([1000]), "prefill_tokens": np.array([10])}
    names = {"workload": "w", "tokenizer": "qwen3", "counting": "text", "reuse": "history"}
    rows = boundness([batch], **names, hardware=hardware, headlines=headlines).to_pylist()
    ours = {
        (row["block_tokens"], row["cost_model"])
        for row in rows
        if (row["model"], row["accelerator"]) == ("our-1b", "our-gpu")
    }
    # 3 blocks x 3 cost models
    assert ours == {(block, cost) for block in (1, 16, 256) for cost in ("2n", "attention", "full")}


def test_kappa_crit_knows_them(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a choice they are among the headlines; by name they answer."""
    home = str(user.parent)
    assert main(["crit", "--home", home, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"our-1b"} < {row["model"] for row in rows}
    assert {"our-gpu"} < {row["accelerator"] for row in rows}
    assert main(["crit", "--home", home, "--model", "our-1x"]) == 1
    assert "nearest are our-1b" in capsys.readouterr().err


def test_a_headline_is_sure(user: Path) -> None:
    """A platform that is known only second-hand is refused as a headline, in the file of the headlines."""
    spoil(user, "platforms", confidence="secondary")
    with refused(ErrorCode.BAD_ROW, user / "headlines.csv", "row 3, column model, accelerator"):
        [load_reference(table, user=user) for table in USER_TABLES]


UNSEEN = {
    "\0": "U+0000", "\x1b": "U+001B", "\x7f": "U+007F", "\t": "U+0009", "\n": "U+000A", "\x85": "U+0085",
    "\u00ad": "U+00AD SOFT HYPHEN", "\u200b": "U+200B ZERO WIDTH SPACE", "\u200d": "U+200D ZERO WIDTH JOINER",
    "\u202e": "U+202E RIGHT-TO-LEFT OVERRIDE", "\u2066": "U+2066 LEFT-TO-RIGHT ISOLATE", "\u2028": "U+2028 LINE",
    "\ufeff": "U+FEFF ZERO WIDTH NO-BREAK SPACE", "\ue000": "U+E000", "\u00a0": "U+00A0 NO-BREAK SPACE",
    "\u3164": "U+3164 HANGUL FILLER", "\ufe0f": "U+FE0F VARIATION SELECTOR-16", "\U000e0041": "U+E0041 TAG",
}  # fmt: skip


@pytest.mark.parametrize("character", UNSEEN)
@pytest.mark.parametrize(("name", "column"), [("accelerators", "accelerator"), ("links", "link"), ("links", "source")])
def test_a_text_that_cannot_be_seen(user: Path, name: str, column: str, character: str) -> None:
    """A name or any other text with a character that steers a terminal or has no width is refused, with its place."""
    path = spoil(user, name, **{column: f"our{character}s"})
    place, found = f"row 2, column {column}: ", f"{UNSEEN[character]}"
    with refused(ErrorCode.BAD_ROW, path, place, found, "position 4") as caught:
        load_reference(name, user=user)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("source", ["Größe 日本 5 µs", "e\u0301", "😀", "a  b"])
def test_any_other_text_is_kept(user: Path, source: str) -> None:
    """What can be seen is text, whatever the script."""
    spoil(user, "links", source=source)
    assert source in load_reference("links", user=user)["source"].to_pylist()


def test_a_row_that_kappa_adds_can_be_seen_too(user: Path) -> None:
    """A name that came from the command line is refused before it is written."""
    row = dict.fromkeys(REFERENCE["links"].names) | OURS["links"][0] | {"link": "a\u202eb"}
    with refused(ErrorCode.BAD_ROW, "column link: ", "U+202E RIGHT-TO-LEFT OVERRIDE", "position 2"):
        put_rows(user, "links", [row], ("link",))


def test_a_tokenizer_is_found_in_any_case(user: Path) -> None:
    """It takes the spelling of its TOML file; the names are those that the steps know."""
    assert tokenizer_names() == list(tokenizer_specs())
    spoil(user, "models", tokenizer="Qwen3")
    assert load_reference("models", user=user).to_pylist()[-1]["tokenizer"] == "qwen3"


@pytest.mark.parametrize(
    ("name", "sure", "expected"),
    [
        ("links", "secondary", "secondary"),
        ("accelerators", "secondary", "secondary"),
        ("links", "low", "low"),
        ("accelerators", "high", "high"),
    ],
)
def test_a_platform_is_no_surer_than_its_parts(user: Path, name: str, sure: str, expected: str) -> None:
    """A high platform of a second-hand part is second-hand; its own confidence is lowered, never raised."""
    (user / "headlines.csv").unlink()
    spoil(user, name, confidence=sure)
    assert load_reference("platforms", user=user).to_pylist()[-1]["confidence"] == expected
    spoil(user, "platforms", confidence="medium")
    rank = CONFIDENCES.index
    assert load_reference("platforms", user=user).to_pylist()[-1]["confidence"] == max("medium", expected, key=rank)


def test_a_second_hand_link_is_no_default(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It answers where it is named, and is no headline, although its platform calls itself sure."""
    spoil(user, "links", confidence="secondary")
    with refused(ErrorCode.BAD_ROW, user / "headlines.csv", "row 3, column ", "second-hand"):
        load_reference("headlines", user=user)
    (user / "headlines.csv").unlink()
    write(user / "platforms.csv", [OURS["platforms"][0] | {"accelerator": "h100-sxm"}])
    chosen = ["crit", "--home", str(user.parent), "--model", "llama-3.1-8b", "--accelerator", "h100-sxm"]
    assert main([*chosen, "--format", "json"]) == 0
    links = {row["link"] for row in json.loads(capsys.readouterr().out)}
    assert "pcie5-x16" in links
    assert "our-link" not in links
    assert main([*chosen, "--link", "our-link", "--format", "json"]) == 0
    assert [row["link"] for row in json.loads(capsys.readouterr().out)] == ["our-link"]


@pytest.mark.parametrize("command", ["crit", "run"])
def test_a_file_that_is_not_read_is_told(
    user: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """One line for each that is not hidden; what is asked is answered all the same."""
    for name in ("accelerators.toml", ".accelerators.toml"):
        (user / name).write_text("?", "utf8")
    monkeypatch.setattr("assets.commands.running.run", lambda _: 0)
    arguments = ["--model", "our-1b", "--accelerator", "our-gpu"] if command == "crit" else []
    assert main([command, "--home", str(user.parent), *arguments]) == 0
    assert capsys.readouterr().err == (
        f"warning: {user / 'accelerators.toml'} is not read, own rows are CSV files, call it one of models, "
        "accelerators, links, platforms, headlines, measured, measurements, calibrated, prices (.csv), or keep it "
        "elsewhere\n"
    )


def test_identity_follows_every_byte(user: Path) -> None:
    """What is made from the rows is made again when they change, and only then."""
    before = user_rows_identity(user)
    assert before == user_rows_identity(user) != ""
    spoil(user, "links", sustained_bytes_per_s=2e10)
    assert user_rows_identity(user) != before
    assert user_rows_identity(user / "none") == user_rows_identity(None) == ""


def test_the_examples_of_the_docs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files in docs/own-rows.md are read, and the error shown there is what is told."""
    text = (Path(__file__).parents[4] / "docs" / "own-rows.md").read_text("utf8")
    folder = user_folder(tmp_path)
    folder.mkdir()
    blocks = re.findall(r"`reference/(\w+\.csv)`:\n\n```csv\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in blocks] == ["accelerators.csv", "links.csv", "platforms.csv"]
    for name, block in blocks:
        (folder / name).write_text(block, "utf8")
    chosen = ["--model", "llama-3.1-70b", "--accelerator", "our-gpu", "--format", "json"]
    assert main(["crit", "--home", str(tmp_path), *chosen]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    # 2 x 70,553,706,496 / 327,680 x 27e9 / (0.55 x 400e12) = 430,625.6 x 1.227273e-4 = 52.849
    assert row["kappa_crit"] == pytest.approx(52.849, rel=1e-4)
    rates = {row["link"]: row["peak_bytes_per_s"] for row in load_reference("links", user=folder).to_pylist()}
    # 400e9 / 8
    assert rates["our-network"] == 50e9
    (folder / "links.csv").write_text(blocks[1][1].replace("31.5e9", "64"), "utf8")
    assert main(["crit", "--home", str(tmp_path), *chosen]) == 1
    told = capsys.readouterr().err.replace(str(folder), "data/reference")
    assert told.strip() in text


def test_a_model_without_parameters_has_its_bytes(user: Path) -> None:
    """Bytes a token and the time to load them need no parameters; kappa_crit does, and is empty."""
    spoil(user, "models", total_params="", active_params="", layer_params="", head_params="")
    tables = hardware_tables(FOLDER, user)
    model = read_sources(FOLDER, user).models["our-1b"]
    assert not is_known(model, "2n")
    # 5120 bytes x 1000 tokens at 1e10 bytes/s; half of that at fp8
    assert (model.kv_bytes_per_token, kv_bytes(model, 1000.0, "fp8")) == (5120, 2_560_000)
    assert transfer_s(model, Machine(1e14, 1e10), 1000.0, "bf16") == pytest.approx(5.12e-4)
    crit = {row["kappa_crit"] for row in tables["kappa_crit"].to_pylist() if row["model"] == "our-1b"}
    assert crit == {None}


def test_names_are_found_whatever_their_case(user: Path) -> None:
    """The lookups of `pipelines` take any case, for rows of kappa and of a user; so does a platform's row."""
    spoil(user, "platforms", accelerator="Our GPU", link="OUR_LINK")
    sources = read_sources(FOLDER, user)
    assert named(sources.models, "Llama-3.1-70B") == sources.models["llama-3.1-70b"]
    assert named(sources.accelerators, "H100 SXM") == sources.accelerators["h100-sxm"]
    assert named(sources.links, "OUR-Link") == sources.links["our-link"]
    assert named(sources.models, "llama-9") is None
    (pair,) = fitting_platforms(sources, "OUR_GPU", "Our-Link")
    assert (pair.accelerator, pair.link, pair.basis) == ("our-gpu", "our-link", "physical")


def test_rows_that_kappa_adds_keep_the_others(tmp_path: Path) -> None:
    """A measured row of the same names is replaced, others stay, and a folder is made where there is none."""
    user = user_folder(tmp_path)
    row = {
        "accelerator": "a", "link": "l", "device_name": "d", "bf16_flop_per_s": 1e14, "fp16_flop_per_s": None,
        "fp8_flop_per_s": None, "pinned_to_device_bytes_per_s": 1e10, "pinned_to_host_bytes_per_s": 1e10,
        "pageable_to_device_bytes_per_s": 1e9, "pageable_to_host_bytes_per_s": 1e9, "hbm_bytes_per_s": 1e12,
        "torch_version": "2", "runtime_version": None, "retrieved": "2024-05-01", "is_example": False, "source": "s",
    }  # fmt: skip
    for link, rate in (("l", 1e14), ("m", 2e14), ("l", 3e14)):
        put_rows(user, "measured", [row | {"link": link, "bf16_flop_per_s": rate}], ("accelerator", "link"))
    found = load_reference("measured", user=user).to_pylist()
    # l replaced, m kept
    assert [(row["link"], row["bf16_flop_per_s"]) for row in found] == [("m", 2e14), ("l", 3e14)]
    assert [path.name for path in user.iterdir()] == ["measured.csv"]
    # A file that a user keeps elsewhere, readable for one alone, stays so
    kept = (user / "measured.csv").rename(tmp_path / "kept.csv")
    kept.chmod(0o600)
    (user / "measured.csv").symlink_to(kept)
    put_rows(user, "measured", [row | {"bf16_flop_per_s": 4e14}], ("accelerator", "link"))
    assert ((user / "measured.csv").readlink(), kept.stat().st_mode & 0o777) == (kept, 0o600)
    assert [row["bf16_flop_per_s"] for row in load_reference("measured", user=user).to_pylist()] == [2e14, 4e14]


def test_rows_that_a_run_has_not_found_wait(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables say so, until a generation notes the same rows; no generation, nothing to wait for."""
    home, note = user.parent, {"generation": 3, "own_rows": user_rows_identity(user)}
    assert waiting_rows(home, None) == waiting_rows(home, note) == ""
    assert "generation 3" in waiting_rows(home, note | {"own_rows": ""})
    spoil(user, "links", sustained_bytes_per_s=2e10)
    assert "generation 3" in waiting_rows(home, note)
    # a home without own rows, and a generation made without any
    assert waiting_rows(home / "none", {"generation": 3}) == ""
    made = home / "generations" / "3"
    made.mkdir(parents=True)
    (home / "current").symlink_to(made)
    noted = dict.fromkeys(("warehouse", "report", "content"), "") | {"is_sample": True, "series": []}
    (made / "generation.json").write_text(json.dumps(note | noted), "utf8")
    main(["sql", "--home", str(home), "SELECT 1"])
    assert capsys.readouterr().err.startswith("note: rows in ")
