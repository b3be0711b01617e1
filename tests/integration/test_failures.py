"""What goes wrong is told in one line, leaves the last good generation as it was, and never shows a secret."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from hub_stand_in import HubStandIn
from kappa_process import SECRET, Kappa, errors_of, files_below
from tiny_sets import FINQA, SHAREGPT, all_sets

SMALL = ("--workload", "finqa", "--tokenizer", "qwen3")

# The same program with pauses of a thousandth.
IMPATIENT = """
import sys
from assets.commands.cli import main
from pipelines.fetch import hub
hub.FIRST_PAUSE_S /= 1000
sys.exit(main())
"""


def assert_one_line(process: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Check exit code 1 and exactly one line `error: what, why, what to do` with these parts, and no token."""
    lines = errors_of(process)
    assert process.returncode == 1, process.stderr
    assert len(lines) == 1, process.stderr
    assert lines[0].startswith("error: ")
    assert lines[0].count(", ") >= 2
    for part in parts:
        assert part in lines[0]
    assert SECRET not in process.stdout + process.stderr


def assert_no_secret(folder: Path) -> None:
    """Check that no file below a folder holds the token."""
    assert [path for path, body in files_below(folder).items() if SECRET.encode() in body] == []


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("run", "--workload", "sharegtp"), ("sharegtp", "sharegpt-v3", "narrativeqa", "finqa")),
        (("run", "--tokenizer", "llama"), ("llama", "llama-3.1", "qwen3")),
        (("sql", "SELECT 1"), ("no warehouse",)),
        (("sql", "--file", "no-such-file.sql"), ("no-such-file.sql",)),
        (("refresh",), ("no warehouse",)),
        (("report",), ("no warehouse",)),
        (("crit", "--model", "llama-70b"), ("llama-70b", "llama-3.1-70b")),
    ],
)
def test_mistakes_name_what_is_known(empty: Kappa, arguments: tuple[str, ...], names: tuple[str, ...]) -> None:
    """An unknown name is told with the known ones; a home without a warehouse is told as that."""
    assert_one_line(empty(*arguments), *names)


def test_a_changed_byte_is_found(copy: Kappa, hub: HubStandIn, changed_finqa: Callable[[], str]) -> None:
    """A body that is not the stated one is an error that names the file, twice tried; the last generation stays."""
    before = copy.state()
    changed_finqa()
    hub.faults.flipped = {"train.json"}
    process = copy("run", *SMALL)
    assert_one_line(process, FINQA, "train.json", "damaged")
    assert copy.state() == before
    assert len(hub.asked("GET /datasets/kensho")) == 2
    hub.faults.flipped.clear()
    assert copy("run", *SMALL).returncode == 0
    assert copy.generation == 2


@pytest.mark.parametrize("has_token", [True, False])
def test_a_gated_data_set_says_what_to_do(copy: Kappa, hub: HubStandIn, *, has_token: bool) -> None:
    """A data set behind a gate names the licence and HF_TOKEN, with a token without access and without one."""
    before = copy.state()
    hub.faults.gated.add(FINQA)
    process = copy("run", *SMALL, env={} if has_token else {"HF_TOKEN": ""})
    assert_one_line(process, FINQA, "gated", "licence", "HF_TOKEN")
    assert copy.state() == before
    assert_no_secret(copy.home)


def test_a_repository_that_is_gone(copy: Kappa, hub: HubStandIn) -> None:
    """A repository that the Hub does not have is named; the last generation stays, and `--check` tells the same."""
    before = copy.state()
    hub.faults.gone.add(FINQA)
    assert_one_line(copy("run", *SMALL), FINQA, "not on the Hub")
    assert_one_line(copy("refresh", "--check"), FINQA, "not on the Hub")
    assert copy.state() == before


def test_a_file_that_is_gone(copy: Kappa, hub: HubStandIn) -> None:
    """A used file that a new revision does not have is named, and counts as changed."""
    files = all_sets()[FINQA]
    del files["dev.json"]
    hub.commit(FINQA, files)
    assert copy("refresh", "--check").returncode == 10
    assert_one_line(copy("run", *SMALL), FINQA, "dev.json")
    assert copy.generation == 1


def test_a_hub_that_does_not_answer(copy: Kappa) -> None:
    """A closed port is tried six times, then told with its address and without what stands before the @."""
    before = copy.state()
    address = "http://someone:swordfish@127.0.0.1:9"
    process = copy("run", *SMALL, env={"HF_ENDPOINT": address}, program=IMPATIENT)
    assert_one_line(process, "127.0.0.1:9", "HF_ENDPOINT", "--sample")
    assert "swordfish" not in process.stdout + process.stderr
    assert copy.state() == before
    assert [path for path, body in files_below(copy.home).items() if b"swordfish" in body] == []


@pytest.mark.parametrize("fault", ["busy", "flipped", "none", "doctor"])
def test_the_password_of_an_endpoint(empty: Kappa, hub: HubStandIn, fault: str) -> None:
    """It is in no file of the home and in no word, whether the run fails with --debug or ends well."""
    password = "sword%2Ffish-and-chips"  # noqa: S105 - no account has it
    hub.faults.busy = 10_000 if fault == "busy" else 0
    hub.faults.flipped = {"train.json"} if fault == "flipped" else set()
    address = hub.url.replace("//", f"//someone:{password}@")
    command = ("doctor",) if fault == "doctor" else ("--debug", "run", *SMALL)
    env = {"HF_ENDPOINT": address, "HTTPS_PROXY": f"http://someone:{password}@127.0.0.1:9"}
    process = empty(*command, env=env, program=IMPATIENT)
    if fault != "doctor":
        assert (process.returncode, "Traceback" in process.stderr) == ((0, False) if fault == "none" else (1, True))
        assert files_below(empty.home / "dagster")
    forms = [form.encode() for form in (password, password.replace("%2F", "/"), SECRET)]
    files = {**files_below(empty.home), "told": (process.stdout + process.stderr).encode()}
    assert [(path, form) for path, body in files.items() for form in forms if form in body] == []


def test_no_usable_record(copy: Kappa, hub: HubStandIn) -> None:
    """A workload whose records are all rejected is an error with the first reason; the last generation stays."""
    hub.commit(FINQA, {"train.json": b'[{"Context": 1}]', "dev.json": b"[]", "test.json": b"[]"})
    assert_one_line(copy("run", *SMALL), "finqa", "no usable record")
    assert copy.generation == 1


def test_a_cut_file_is_used_as_far_as_it_goes(copy: Kappa, hub: HubStandIn) -> None:
    """Whole records of an array that ends half-way are used; `rejects` and a loud line say where it was cut."""
    files = all_sets()[FINQA]
    whole = b'[{"Context": "the the", "Question": "the"}, {"Context": "the'
    hub.commit(FINQA, {**files, "train.json": whole})
    process = copy("run", *SMALL)
    assert process.returncode == 0, process.stderr
    # One record of K 2, T 1 in train; the two of dev: K 8 + 5, T 4 + 1. The third element begins at byte 44.
    query = "SELECT turns, cached_tokens_sum, prefill_tokens_sum FROM summary WHERE counting = 'text'"
    assert copy.rows(query) == [(3, 15, 6)]
    reason = "SELECT path, record, level, detail FROM rejects WHERE reason = 'truncated'"
    path, record, level, detail = copy.rows(reason)[0]
    assert (path, record, level) == ("train.json", 1, "file")
    # 1 whole record of train; the element that is cut is none
    assert copy.rows("SELECT records FROM sources WHERE path = 'train.json'") == [(1,)]
    assert "44" in detail
    assert [line for line in process.stderr.splitlines() if "train.json" in line and "cut" in line.lower()]


@pytest.mark.parametrize("command", [("run", *SMALL), ("run", "--sample"), ("report",)])
def test_a_home_that_cannot_be_written(empty: Kappa, command: tuple[str, ...], tmp_path: Path) -> None:
    """A home below a regular file is told at once, before anything is fetched (root heeds no permissions)."""
    (tmp_path / "file").write_text("here")
    process = Kappa(tmp_path / "file" / "home", empty.hf_home, empty.endpoint)(*command)
    assert_one_line(process, str(tmp_path / "file" / "home"))


@pytest.mark.parametrize("command", [("run", *SMALL), ("refresh",), ("sql", "SELECT 1"), ("report",)])
def test_a_home_of_another_layout(empty: Kappa, command: tuple[str, ...]) -> None:
    """A warehouse of a newer or older layout is refused by every command in one line; it stays as it is."""
    layout = "2" if command[0] == "run" else "0"
    empty.home.mkdir()
    (empty.home / "LAYOUT").write_text(layout)
    (empty.home / "warehouse.duckdb").write_text("old")
    assert_one_line(empty(*command), f"layout {layout}")
    assert files_below(empty.home) == {"LAYOUT": layout.encode(), "warehouse.duckdb": b"old"}


def test_no_space_by_a_limit(copy: Kappa, changed_finqa: Callable[[], str]) -> None:
    """Where files may not grow beyond 1 MB the run says so in one line, and the last generation stays."""
    before = copy.state()
    changed_finqa()
    limit = 1_000_000
    process = copy("run", *SMALL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert_one_line(process)
    assert copy.state() == before


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def told_once(process: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of ours; a library may have warned in words of its own before."""
    told = [line for line in errors_of(process) if line.startswith("error: ")]
    assert process.returncode == 1
    assert len(told) == 1, process.stderr
    assert "Traceback" not in process.stderr
    assert SECRET not in process.stderr
    return told[0]


@pytest.mark.usefixtures("hub")
def test_no_space_on_the_disk_of_the_home(small: Kappa, tiny_disk: Path) -> None:
    """A home on a full disk is an error in one line that says so, and Dagster, which meets it first, says nothing."""
    process = Kappa(tiny_disk / "home", small.hf_home, small.endpoint)("run", *SMALL)
    assert_one_line(process, "free disk space")


@pytest.mark.usefixtures("hub")
def test_a_disk_that_was_full_is_usable_again(empty: Kappa, small: Kappa) -> None:
    """A home whose first file could not be written is no older layout once there is space."""
    empty.home.mkdir()
    (empty.home / "LAYOUT").touch()
    process = Kappa(empty.home, small.hf_home, small.endpoint)("sql", "SELECT 1")
    assert_one_line(process, "no warehouse")


def test_no_space_in_the_cache(empty: Kappa, tiny_disk: Path, hub: HubStandIn) -> None:
    """A Hub cache on a full disk is an error in one line that names the file and HF_HOME."""
    hub.commit(SHAREGPT, {**all_sets()[SHAREGPT], "sg_90k_part1.json": b"[" + b" " * 3_000_000 + b"]"})
    process = Kappa(empty.home, tiny_disk / "cache", empty.endpoint)("run", "--workload", "sharegpt")
    told = told_once(process)
    for part in ("sg_90k_part1.json", "space", "HF_HOME"):
        assert part in told


def test_a_database_that_is_open_for_writing_elsewhere(copy: Kappa) -> None:
    """`kappa sql` beside DuckDB's own shell, which opens for writing: the remedy is to close that, no new run."""
    with duckdb.connect(str(copy.home / "warehouse.duckdb")):
        process = copy("sql", "SELECT count(*) FROM turns")
    assert_one_line(process)
    assert "kappa run" not in process.stderr


def test_debug_shows_the_traceback(empty: Kappa) -> None:
    """With --debug the same failure ends in its traceback."""
    process = empty("--debug", "sql", "SELECT 1")
    assert process.returncode == 1
    assert "Traceback" in process.stderr


@pytest.mark.parametrize("arguments", [(), ("walk",), ("run", "--fast"), ("sql", "--format", "xml", "SELECT 1")])
def test_usage_errors_have_exit_code_2(empty: Kappa, arguments: tuple[str, ...]) -> None:
    """A command line that is not understood gives exit code 2."""
    assert empty(*arguments).returncode == 2
