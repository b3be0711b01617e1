"""`kappa measure` without an accelerator: what it times, the rows that it keeps, and what picks them up."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from refusals import refused

from assets.commands import measure as command
from assets.commands.cli import main
from pipelines.hardware.ratios import hardware_tables
from pipelines.measure import torch_device
from pipelines.measure.timing import COPY_BYTES, MATMUL_ROWS, accelerator_of, measure
from warehouse.errors import ErrorCode
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder, user_rows_identity

EXAMPLE = Path(__file__).parents[3] / "data" / "measured-example.csv"


class Clock:
    """A device whose copies take 10 us and then 20 GB/s, and whose products run at 500 TFLOP/s; it has no fp8."""

    name = "NVIDIA H100 80GB HBM3"
    library_version = "2.9.0"
    runtime_version = "CUDA 13.0"

    def __init__(self) -> None:
        """Start without a call."""
        self.copies: list[tuple[str, str, int]] = []

    def copy_seconds(self, memory: str, direction: str, size: int, repetitions: int) -> list[float]:
        """Return one slow repetition among equal ones: a median does not see it."""
        self.copies.append((memory, direction, size))
        seconds = 10e-6 + size / (5e9 if memory == "pageable" else 20e9)
        return [100 * seconds] + [seconds] * (repetitions - 1)

    def matmul_seconds(self, dtype: str, rows: int, repetitions: int) -> list[float] | None:
        """Return equal repetitions, and none for fp8."""
        return None if dtype == "fp8" else [2 * rows**3 / 500e12] * repetitions


def measured(device: Clock) -> Any:  # noqa: ANN401 - a Measured
    """Return what is measured of a device."""
    return measure(device, accelerator="h100-sxm", link="host-link", day="2026-11-29")


def test_rates_by_hand() -> None:
    """The summary has the largest copies; the median leaves out one slow repetition."""
    row = measured(Clock()).summary
    # 2^30 / (10e-6 + 2^30 / 20e9) = 19.99628e9; pageable up to 2^28: 2^28 / (10e-6 + 2^28 / 5e9) = 4.999069e9
    assert row["pinned_to_device_bytes_per_s"] == pytest.approx(19.99628e9, rel=1e-6)
    assert row["pinned_to_host_bytes_per_s"] == pytest.approx(19.99628e9, rel=1e-6)
    assert row["pageable_to_device_bytes_per_s"] == pytest.approx(4.999069e9, rel=1e-6)
    # inside the device every byte is read and written: 2 x 19.99628e9
    assert row["hbm_bytes_per_s"] == pytest.approx(39.99255e9, rel=1e-6)
    assert row["bf16_flop_per_s"] == row["fp16_flop_per_s"] == pytest.approx(500e12)
    assert row["fp8_flop_per_s"] is None
    assert row["is_example"] is False


def test_small_copies_are_in_the_details() -> None:
    """Every size of every way has its row, and small copies are slower."""
    device = Clock()
    details = measured(device).details
    # 8 + 8 pinned, 7 + 7 pageable, 1 inside, 2 products
    assert (len(device.copies), len(details)) == (31, 33)
    pinned = [row["rate"] for row in details if (row["memory"], row["direction"]) == ("pinned", "to_device")]
    assert pinned == sorted(pinned)
    # 65,536 / (10e-6 + 65,536 / 20e9) = 4.9351e9
    assert pinned[0] == pytest.approx(65_536 / (10e-6 + 65_536 / 20e9))
    assert {row["rate_unit"] for row in details if row["quantity"] == "matmul"} == {"FLOP/s"}
    assert (COPY_BYTES[0], COPY_BYTES[-1], MATMUL_ROWS) == (64 * 1024, 2**30, 8192)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA A10G", "a10g"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Acme  Cruncher (9)", "acme-cruncher-9"),
    ],
)
def test_names(device: str, name: str) -> None:
    """A device that the tables know gets their name, any other its own."""
    assert accelerator_of(device) == name


def test_the_command_keeps_a_row_that_the_tables_pick_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A platform of the basis `measured` with its figures, in `platforms`, `kappa_crit` and `kappa crit`."""
    monkeypatch.setattr(command, "open_device", Clock)
    home = ["--home", str(tmp_path)]
    assert main(["measure", *home]) == 0
    told = capsys.readouterr()
    assert "NVIDIA H100 80GB HBM3 as h100-sxm over host-link, PyTorch 2.9.0" in told.out
    assert "matrix products, fp8                      -" in told.out
    tables = hardware_tables(FOLDER, user_folder(tmp_path))
    (platform,) = [row for row in tables["platforms"].to_pylist() if row["basis"] == "measured"]
    assert (platform["accelerator"], platform["link"]) == ("h100-sxm", "host-link")
    assert platform["note"] == "NVIDIA H100 80GB HBM3, PyTorch 2.9.0 (CUDA 13.0)"
    (row,) = [
        row
        for row in tables["kappa_crit"].to_pylist()
        if (row["basis"], row["model"], row["kv_dtype"]) == ("measured", "llama-3.1-70b", "bf16")
    ]
    # 2 x 70,553,706,496 / 327,680 x 19.99628e9 / 500e12 = 430,626 x 3.999256e-5 = 17.2218
    assert row["kappa_crit"] == pytest.approx(17.2218, rel=1e-4)
    assert main(["crit", *home, "--accelerator", "h100-sxm", "--basis", "measured", "--model", "llama-3.1-70b"]) == 0
    assert "measured" in capsys.readouterr().out
    question = ["--cached-tokens", "1000", "--new-tokens", "10", "--output-tokens", "90", "--tensor-parallel", "2"]
    chosen = ["crit", *home, "--accelerator", "h100-sxm", "--basis", "measured", "--model", "llama-3.1-70b"]
    assert main([*chosen, *question, "--format", "json", "--cost-model", "2n"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    # 100 x 327,680 / (2 x 19.99628e9), and 1000 x 327,680 / (2 x 19.99628e9) to load
    assert answer["write_back_s"] == pytest.approx(100 * 327_680 / 39.99256e9, rel=1e-5)
    assert answer["transfer_s"] == pytest.approx(1000 * 327_680 / 39.99256e9, rel=1e-5)


def test_measuring_again_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row a machine: the newest; another link is another row, and the identity follows."""
    monkeypatch.setattr(command, "open_device", Clock)
    user = user_folder(tmp_path)
    assert user_rows_identity(user) == ""
    for _ in range(2):
        assert main(["measure", "--home", str(tmp_path)]) == 0
    first = user_rows_identity(user)
    assert load_reference("measured", user=user).num_rows == 1
    assert load_reference("measurements", user=user).num_rows == 33
    assert main(["measure", "--home", str(tmp_path), "--link", "pcie5-x16"]) == 0
    # 1 + 1 machines
    assert load_reference("measured", user=user).num_rows == 2
    assert user_rows_identity(user) not in ("", first)


def test_the_example_is_marked_and_never_used(tmp_path: Path) -> None:
    """The recorded format is what the command writes, and a home folder refuses the example itself."""
    header = EXAMPLE.read_text("utf8").splitlines()[0]
    assert header == (FOLDER / "measured.csv").read_text("utf8").strip()
    user = user_folder(tmp_path)
    user.mkdir()
    shutil.copy(EXAMPLE, user / "measured.csv")
    with refused(ErrorCode.BAD_ROW, user / "measured.csv", "row 2, column is_example: 'true'"):
        load_reference("measured", user=user)


def test_the_example_has_the_format(tmp_path: Path) -> None:
    """Without its mark it is read like a measurement."""
    user = user_folder(tmp_path)
    user.mkdir()
    # Its day is put back: the clock of this machine may be behind it.
    text = EXAMPLE.read_text("utf8").replace(",true,", ",false,").replace(",2026-11-29,", ",2024-05-01,")
    (user / "measured.csv").write_text(text, "utf8")
    (row,) = load_reference("measured", user=user).to_pylist()
    assert row["device_name"].startswith("EXAMPLE")


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One line, exit code 1, nothing written."""

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(torch_device, "importlib", SimpleNamespace(import_module=missing))
    assert main(["measure", "--home", str(tmp_path / "home")]) == 1
    told = capsys.readouterr()
    assert told.err == (
        "error: nothing was measured, PyTorch is not installed, install it on a machine with an accelerator\n"
    )
    assert not (tmp_path / "home").exists()


def test_without_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch alone is not enough."""
    torch = SimpleNamespace(__version__="2.9.0", cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setattr(torch_device, "importlib", SimpleNamespace(import_module=lambda _: torch))
    with refused(ErrorCode.NO_ACCELERATOR, "PyTorch 2.9.0"):
        torch_device.open_device()


class Tensor:
    """A tensor that notes copies."""

    def __init__(self, log: list[str], name: str) -> None:
        """Take the log that all share."""
        self.log, self.name = log, name

    def copy_(self, source: Tensor, *, non_blocking: bool) -> None:
        """Note a copy."""
        self.log.append(f"{source.name}>{self.name}{' async' if non_blocking else ''}")

    def to(self, kind: str) -> Tensor:
        """Return itself under the kind's name."""
        return Tensor(self.log, kind)

    def t(self) -> Tensor:
        """Return itself, transposed."""
        return Tensor(self.log, f"{self.name}.t")

    def __matmul__(self, other: Tensor) -> Tensor:
        """Note a product."""
        self.log.append(f"{self.name}@{other.name}")
        return self


def fake_torch(log: list[str]) -> SimpleNamespace:
    """Return as much of PyTorch as is used, without fp8 products."""
    return SimpleNamespace(
        __version__="2.9.0", uint8="u8", float16="f16", bfloat16="b16", float8_e4m3fn="f8", float32="f32",
        version=SimpleNamespace(cuda=None, hip="7.0"),
        cuda=SimpleNamespace(
            is_available=lambda: True, get_device_name=lambda _: "Acme 1", synchronize=lambda: log.append("wait")
        ),
        empty=lambda *_, **__: Tensor(log, "device"), zeros=lambda *_, **__: Tensor(log, "host"),
        ones=lambda *_, **__: Tensor(log, "one"), empty_like=lambda _: Tensor(log, "other"),
        randn=lambda *_, **__: Tensor(log, "random"),
    )  # fmt: skip


def test_pytorch_is_asked_rightly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ways, synchronisation and what is missing, over a stand-in for PyTorch."""
    log: list[str] = []
    monkeypatch.setattr(torch_device, "importlib", SimpleNamespace(import_module=lambda _: fake_torch(log)))
    monkeypatch.setattr(torch_device, "WARM_UP_S", 0.0)
    device = torch_device.open_device()
    assert (device.name, device.library_version, device.runtime_version) == ("Acme 1", "2.9.0", "ROCm 7.0")
    # one copy that is not timed, then three; each is waited for before and after
    assert len(device.copy_seconds("pinned", "to_device", 64, 3)) == 3
    assert log == ["wait", "host>device async", "wait"] * 4
    log.clear()
    device.copy_seconds("pageable", "to_host", 64, 1)
    device.copy_seconds("device", "inside", 64, 1)
    assert [entry for entry in log if entry != "wait"] == ["device>host"] * 2 + ["other>device async"] * 2
    log.clear()
    assert len(device.matmul_seconds("bf16", 8, 2) or []) == 2
    # one trial, then two repetitions of ten products
    assert [entry for entry in log if entry != "wait"] == ["b16@b16"] * 21
    assert device.matmul_seconds("fp8", 8, 2) is None
