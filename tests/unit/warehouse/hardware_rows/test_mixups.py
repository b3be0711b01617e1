"""Units cannot be mixed up in a user's rows: each mistake is refused with file, row, column and what it looks like."""

from __future__ import annotations

import csv
import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from warehouse.errors import KappaError
from warehouse.hardware_rows.names import find_name, nearest_names
from warehouse.hardware_rows.reference_tables import REFERENCE, USER_TABLES
from warehouse.hardware_rows.rows import load_reference, user_folder
from warehouse.hardware_rows.user_rows import put_rows

SURE = {"retrieved": "2024-05-01", "confidence": "high", "source": "our own box"}
GPU = {
    "accelerator": "our-gpu",
    "dense_bf16_flop_per_s": "3e14",
    "hbm_bytes": "8e10",
    "hbm_bytes_per_s": "3e12",
    **SURE,
}
LINK = {"link": "our-link", "kind": "pcie", "peak_bytes_per_s": "3e10", **SURE}
MODEL = {
    "model": "our-8b", "repo_id": "us/our-8b", "attention": "gqa", "total_params": "8e9", "active_params": "8e9",
    "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "kv_bytes_per_token": 131072,
    "max_context_tokens": 131072, "tokenizer": "llama-3.1", "is_tokenizer_proxy": "FALSE", "is_moe": "false",
    "layer_params": "7e9", "head_params": "5e8", "full_attention_layers": 32, "sliding_layers": 0,
    "linear_layers": 0, "v_head_dim": 128, "marginal_kv_bytes_per_token": 131072, "fixed_state_bytes": 0,
    "indexer_bytes_per_token": 0, **SURE,
}  # fmt: skip
MEASURED = {
    "accelerator": "h100-sxm", "link": "pcie5-x16", "device_name": "d", "bf16_flop_per_s": 7e14,
    "fp16_flop_per_s": None, "fp8_flop_per_s": None, "pinned_to_device_bytes_per_s": 5e10,
    "pinned_to_host_bytes_per_s": 5e10, "pageable_to_device_bytes_per_s": 1e9, "pageable_to_host_bytes_per_s": 1e9,
    "hbm_bytes_per_s": 3e12, "torch_version": "2", "runtime_version": None, "retrieved": "2024-05-01",
    "is_example": False, "source": "s",
}  # fmt: skip
GOOD = {"accelerators": GPU, "links": LINK, "models": MODEL, "measured": MEASURED}


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Return an empty folder of a user's rows."""
    folder = user_folder(tmp_path)
    folder.mkdir()
    return folder


def put(user: Path, name: str, **cells: object) -> Path:
    """Write one good row with some cells changed."""
    row: dict[str, Any] = GOOD[name] | cells
    path = user / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    return path


def refused(user: Path, name: str, **cells: object) -> str:
    """Return why a row with these cells is refused, once file, row and column are told; the last column is meant."""
    path = put(user, name, **cells)
    with pytest.raises(KappaError) as caught:
        load_reference(name, user=user)
    start = f"row 2, column {list(cells)[-1]}: "
    assert caught.value.what == f"{path} is not usable"
    assert caught.value.why.startswith(start)
    assert "\n" not in str(caught.value)
    return caught.value.why.removeprefix(start)


def kept(user: Path, name: str, **cells: object) -> dict[str, Any]:
    """Return the user's row with these cells as it is read."""
    put(user, name, **cells)
    return dict(load_reference(name, user=user).to_pylist()[-1])


@pytest.mark.parametrize("name", GOOD)
def test_the_good_rows_are_good(user: Path, name: str) -> None:
    """What is refused below is refused for the cell that was changed."""
    assert kept(user, name)[REFERENCE[name].key[0]] == GOOD[name][REFERENCE[name].key[0]]


class TestMissingScale:
    """A bare number in another unit lies outside what the figure can be."""

    @pytest.mark.parametrize(
        ("name", "column", "cell", "told"),
        [
            # 989.5 x 1e12 = 9.895e14
            ("accelerators", "dense_bf16_flop_per_s", "989.5", "it looks like 989.5 TFLOP/s, which is 9.895e+14"),
            # 0.9895 x 1e15 = 9.895e14; 1e12 would leave it below 1e12
            ("accelerators", "dense_bf16_flop_per_s", "0.9895", "it looks like 0.9895 PFLOP/s, which is 9.895e+14"),
            ("accelerators", "dense_bf16_flop_per_s", "989.5e15", "a prefix counted twice, which leaves 9.895e+14"),
            ("accelerators", "hbm_bytes", "80", "it looks like 80 GB, which is 8e+10"),
            ("accelerators", "hbm_bytes_per_s", "3350", "it looks like 3350 GB/s, which is 3.35e+12"),
            ("accelerators", "tdp_w", "0.7", "it looks like 0.7 kW, which is 700"),
            ("links", "peak_bytes_per_s", "64", "it looks like 64 GB/s, which is 6.4e+10"),
            ("links", "sustained_bytes_per_s", "54.4", "it looks like 54.4 GB/s, which is 5.44e+10"),
            ("models", "total_params", "70", "it looks like 70 billions, which is 7e+10"),
            ("models", "max_context_tokens", "128", "it looks like 128 thousands, which is 128000"),
            ("measured", "bf16_flop_per_s", "700", "it looks like 700 TFLOP/s, which is 7e+14"),
            ("measured", "pinned_to_device_bytes_per_s", "54", "it looks like 54 GB/s, which is 5.4e+10"),
        ],
    )
    def test_is_told(self, user: Path, name: str, column: str, cell: str, told: str) -> None:
        """The message says which unit the number looks like."""
        assert told in refused(user, name, **{column: cell})

    def test_half_a_parameter(self, user: Path) -> None:
        """70.5 for 70.5 billion is no count."""
        assert refused(user, "models", total_params="70.5") == "'70.5' is not a whole number"
        # 70.5e9 is one
        assert kept(user, "models", total_params="70.5e9")["total_params"] == 70_500_000_000

    def test_kilobytes_a_token(self, user: Path) -> None:
        """131 KB for 131,072 bytes do not follow from the shape."""
        # 2 x 32 x 8 x (128 + 128) = 131,072
        told = refused(user, "models", kv_bytes_per_token=131)
        assert told.startswith("131 is not 2 bytes x full layers x kv_heads x (head_dim + v_head_dim), 131072")
        assert told.endswith("10^-3 x 131072: another prefix")

    def test_fp8_bytes_for_bf16(self, user: Path) -> None:
        """Half of the bytes is the cache at fp8."""
        # 131,072 / 2 = 65,536
        assert refused(user, "models", kv_bytes_per_token=65536).endswith("131072: half of 131072")

    def test_rate_below_a_hundredth_of_the_peak(self, user: Path) -> None:
        """A sustained rate in another unit that its own bounds let pass."""
        # 2.5e8 / 3e10 < 0.01
        assert "below a hundredth of the peak" in refused(user, "links", sustained_bytes_per_s="2.5e8")


class TestGibForGb:
    """2^30 is 7.4 % more than 10^9."""

    def test_a_whole_number_of_gibibytes(self, user: Path) -> None:
        """80 x 2^30 in a column of data sheets; 80 x 2^30 written as such is what was meant."""
        told = refused(user, "accelerators", hbm_bytes=80 * 2**30)
        assert told == "85899345920 is 80 x 2^30: GiB where GB are meant? Write 80e9, or the unit: '80 GiB'"
        assert kept(user, "accelerators", hbm_bytes="80 GiB")["hbm_bytes"] == 80 * 2**30

    def test_a_pcie_rate(self, user: Path) -> None:
        """68.7e9 is 64 GiB/s, and PCIe 5 x16 has 64 GB/s."""
        # 64e9 x 1.0737 = 68.72e9
        told = refused(user, "links", link="pcie5-x16-ours", peak_bytes_per_s="68.72e9")
        assert "is no rate of pcie5-x16: one direction is 6.4e+10 before coding; it is 1.0737 x 6.4e+10: GiB" in told
        assert "no rate of pcie5-x16" in refused(user, "links", link="pcie5-x16-ours", peak_bytes_per_s="64 GiB/s")

    def test_beside_a_known_accelerator(self, user: Path) -> None:
        """3597e9 is 3350 x 1.0737."""
        told = refused(user, "accelerators", accelerator="h100-sxm-ours", hbm_bytes_per_s="3597.1e9")
        assert "1.0737 x 3.35e+12: GiB for GB; 'h100-sxm' has 3.35e+12" in told

    def test_written_units_differ(self, user: Path) -> None:
        """60 GiB/s and 60 GB/s are two figures."""
        # 60 x 2^30 = 64,424,509,440
        row = kept(user, "links", peak_bytes_per_s="80 GB/s", sustained_bytes_per_s="60 GiB/s")
        assert (row["peak_bytes_per_s"], row["sustained_bytes_per_s"]) == (80e9, 64_424_509_440)


class TestBitsForBytes:
    """A bit is an eighth of a byte."""

    def test_a_network(self, user: Path) -> None:
        """400 Gb/s put as bytes are above any network; with the unit they are 50 GB/s."""
        told = refused(user, "links", kind="network", peak_bytes_per_s="400e9")
        assert "400 Gb/s are 5e10): bits for bytes, or both directions?" in told
        # 400e9 / 8 = 50e9
        assert kept(user, "links", kind="network", peak_bytes_per_s="400 Gb/s")["peak_bytes_per_s"] == 50e9

    def test_a_named_port(self, user: Path) -> None:
        """A link called 100g has 12.5 GB/s, two ports twice that."""
        # 100e9 / 8 = 12.5e9; 100e9 / 12.5e9 = 8
        told = refused(user, "links", link="rdma-100g", kind="network", peak_bytes_per_s="100e9")
        assert "100 Gb/s a port make 1.25e+10; it is 8 x 1.25e+10: bits for bytes" in told
        assert kept(user, "links", link="rdma-2x100g", kind="network", peak_bytes_per_s="25e9")

    def test_a_pcie_rate(self, user: Path) -> None:
        """252 Gb/s put as bytes are eight times PCIe 4 x16."""
        # 31.5e9 x 8 = 252e9 > 250e9
        assert "for kind pcie" in refused(user, "links", link="pcie4-x16-ours", peak_bytes_per_s="256e9")
        # 16e9 x 8 / 8 = 16e9 raw for x8, 8 times 128e9
        told = refused(user, "links", link="pcie4-x8-ours", peak_bytes_per_s="128e9")
        assert told.endswith("it is 8 x 1.6e+10: bits for bytes. Another link needs another name")

    def test_a_memory(self, user: Path) -> None:
        """24e12 would read 80 GB 300 times a second."""
        # 3e12 x 8 / 8e10 = 300 > 150
        assert "would read 8e+10 bytes 300 times a second" in refused(user, "accelerators", hbm_bytes_per_s="24e12")


class TestSparseForDense:
    """A vendor's headline is twice the dense peak."""

    def test_the_same_figure_twice(self, user: Path) -> None:
        """Dense equal to sparse."""
        cells = {"sparse_bf16_flop_per_s": "3e14", "dense_bf16_flop_per_s": "3e14"}
        assert "dense is half of sparse" in refused(user, "accelerators", **cells)

    def test_without_a_sparse_column(self, user: Path) -> None:
        """1979 TFLOP/s is what an H100 does with sparsity; beside a sparse peak the figure is believed."""
        told = refused(user, "accelerators", dense_bf16_flop_per_s="1979 TFLOP/s")
        assert told.startswith("1.979e+15 is the peak of h100-sxm with sparsity; dense is half of it")
        # 2 x 1979e12 = 3958e12
        row = kept(user, "accelerators", dense_bf16_flop_per_s="1979e12", sparse_bf16_flop_per_s="3958e12")
        assert row["dense_bf16_flop_per_s"] == 1979e12

    def test_beside_a_known_accelerator(self, user: Path) -> None:
        """Twice the dense peak of the accelerator that the name begins with."""
        # 2 x 312e12 = 624e12
        cells = {
            "accelerator": "A100-SXM-80GB-lab",
            "sparse_bf16_flop_per_s": "1248e12",
            "dense_bf16_flop_per_s": "624e12",
        }
        assert "twice 3.12e+14: the peak with sparsity for the dense one" in refused(user, "accelerators", **cells)

    def test_above_fp8(self, user: Path) -> None:
        """A bf16 peak above the fp8 peak is sparse, or the columns are swapped."""
        cells = {"dense_fp8_flop_per_s": "2e14", "dense_bf16_flop_per_s": "3e14"}
        assert "above the dense fp8 peak" in refused(user, "accelerators", **cells)

    def test_sparse_in_another_unit(self, user: Path) -> None:
        """Sparsity doubles, it does not make it a thousand times."""
        assert "more than 4 times the dense" in refused(user, "accelerators", sparse_bf16_flop_per_s="6e16")


class TestBothDirectionsForOne:
    """The sum of both directions is twice what loading gets."""

    def test_above_the_peak(self, user: Path) -> None:
        """A measurement above the peak of one direction, and both directions above twice of it."""
        # 3e10 is the peak: 4e10 one way, 7e10 both ways
        for column, cell in (("sustained_bytes_per_s", "4e10"), ("to_host_bytes_per_s", "4e10")):
            assert "above the peak of one direction" in refused(user, "links", **{column: cell})
        assert "above the peak of both directions" in refused(user, "links", duplex_bytes_per_s="7e10")

    def test_nvlink_c2c(self, user: Path) -> None:
        """900 GB/s is the sum; a measurement above half of it shows that one direction carries it."""
        told = refused(user, "links", kind="c2c", peak_bytes_per_s="900e9")
        assert told.startswith("9e+11 is twice the 4.5e+11 of nvlink-c2c: the sum of both directions for one?")
        # 375 < 450, 700 > 450
        assert "both directions" in refused(
            user, "links", kind="c2c", sustained_bytes_per_s="375e9", peak_bytes_per_s="900e9"
        )
        assert kept(user, "links", kind="c2c", peak_bytes_per_s="900e9", sustained_bytes_per_s="700e9")

    @pytest.mark.parametrize("link", ["pcie5-x16-ours", "PCIe-5.0-x16"])
    def test_pcie(self, user: Path, link: str) -> None:
        """128 GB/s is both directions of PCIe 5 x16, or one of PCIe 6: the name decides."""
        told = refused(user, "links", link=link, peak_bytes_per_s="128e9")
        assert "it is twice 6.4e+10: the sum of both directions for one" in told
        # 64e9 x 16 / 8 = 128e9 for generation 6
        assert kept(user, "links", link="pcie6-x16-ours", peak_bytes_per_s="128e9")

    @pytest.mark.parametrize(
        ("peak", "told"),
        [
            # 2 x 16 x 32e9 / 8 x 128 / 130 = 126.03e9
            ("126.03e9", "1.2603e+11 is twice the 6.30154e+10 of pcie5-x16 after coding: the sum of both"),
            # 2 x 64e9: the data sheet of an H100; 2 x 32e9: that of an A100
            ("128 GB/s", "1.28e+11 is twice the 6.4e+10 of pcie5-x16 before coding: the sum of both"),
            ("64e9", "6.4e+10 is twice the 3.2e+10 of pcie4-x16 before coding: the sum of both"),
            # 2 x 54.4e9, which was measured
            ("108.8e9", "1.088e+11 is twice the 5.44e+10 of pcie5-x16: the sum of both"),
        ],
    )
    def test_an_unnamed_slot(self, user: Path, peak: str, told: str) -> None:
        """A name or a measurement has to say which one of two slots it is."""
        why = refused(user, "links", link="x", peak_bytes_per_s=peak)
        assert why.startswith(told)
        assert why.endswith("by a measured sustained_bytes_per_s, or name its slot, like pcie5-x16-ours")

    def test_evidence_for_an_unnamed_slot(self, user: Path) -> None:
        """More than half of it measured one way, or a rate after coding, which no sum of a data sheet is."""
        assert kept(user, "links", peak_bytes_per_s="64e9", sustained_bytes_per_s="55e9")
        assert "twice" in refused(user, "links", sustained_bytes_per_s="31e9", peak_bytes_per_s="64e9")
        # 32e9 x 16 / 8 x 128 / 130 = 63.015e9, x 8 lanes 31.508e9, generation 6: 64e9 x 16 / 8 x 236 / 256 = 118e9
        for peak in ("63.015e9", "31.508e9", "118e9", "121e9", "25e9", "55e9"):
            assert kept(user, "links", peak_bytes_per_s=peak)
        assert kept(user, "links", link="pcie6-x16-x", peak_bytes_per_s="128e9")

    def test_lanes(self, user: Path) -> None:
        """A x8 slot has half of a x16."""
        assert "it is twice 3.2e+10" in refused(user, "links", link="pcie5-x8-ours", peak_bytes_per_s="63e9")
        # 32e9 x 8 / 8 x 128 / 130 = 31.5e9
        assert kept(user, "links", link="pcie5-x8-ours", peak_bytes_per_s="31.5e9")

    def test_beside_a_known_link(self, user: Path) -> None:
        """A name that begins with a link of kappa has its peak."""
        told = refused(user, "links", link="host-ddr4-3200-8ch-box", kind="memory", peak_bytes_per_s="409.6e9")
        assert "choose a name that does not begin with 'host-ddr4-3200-8ch'" in told


class TestMeasured:
    """What was measured is not above the peak of what it was measured on."""

    @pytest.mark.parametrize(
        ("column", "cell", "told"),
        [
            # 1979 / 989.5 = 2
            ("bf16_flop_per_s", "1979e12", "it is twice 9.895e+14: the peak with sparsity for the dense one"),
            # 126.03 / 63.015 = 2
            ("pinned_to_device_bytes_per_s", "126.03e9", "it is twice 6.3015e+10: the sum of both directions"),
            # 63.015 x 8 = 504.12
            ("pinned_to_host_bytes_per_s", "504.12e9", "it is 8 x 6.3015e+10: bits for bytes"),
            ("hbm_bytes_per_s", "6.7e12", "above the peak 3.35e+12 of h100-sxm"),
        ],
    )
    def test_above_the_peak(self, user: Path, column: str, cell: str, told: str) -> None:
        """Of the accelerator or the link that the row names, whatever the case of the name."""
        assert told in refused(user, "measured", accelerator="H100-SXM", **{column: cell})

    def test_names_take_the_spelling_of_the_tables(self, user: Path) -> None:
        """H100 SXM is h100-sxm; a machine that no table knows keeps its name."""
        row = kept(user, "measured", accelerator="H100 SXM", link="Our Box")
        assert (row["accelerator"], row["link"]) == ("h100-sxm", "Our Box")

    def test_kappa_never_writes_what_it_cannot_read(self, user: Path) -> None:
        """A row above the peak is refused before it is written."""
        with pytest.raises(KappaError, match="row 2, column bf16_flop_per_s: 2e"):
            put_rows(user, "measured", [MEASURED | {"bf16_flop_per_s": 2e15}], ("accelerator", "link"))
        assert list(user.iterdir()) == []


class TestOddFiles:
    """Whatever lies in the folder, it is read or told in one line."""

    def told(self, user: Path, name: str = "links") -> str:
        """Return the one line."""
        with pytest.raises(KappaError) as caught:
            load_reference(name, user=user)
        assert "\n" not in str(caught.value)
        assert str(user) in str(caught.value)
        return str(caught.value)

    @pytest.mark.parametrize(
        "cell", ["nan", "inf", "-inf", "1e400", "-1e400", "9" * 5000, "0x10", "1,5e9", "5e9 GB", "fast"]
    )
    def test_no_number(self, user: Path, cell: str) -> None:
        """Not a number, infinite, too large, a decimal comma: told with row and column, and cut where it is long."""
        for name, column in (("links", "peak_bytes_per_s"), ("models", "total_params")):
            why = refused(user, name, **{column: cell})
            assert "is not a" in why
            assert len(why) < 200

    @pytest.mark.parametrize("cell", ["-3e10", "0", "-0.0", "5e-324"])
    def test_negative_and_nothing(self, user: Path, cell: str) -> None:
        """A rate is positive."""
        assert "is below 1e+08 bytes/s" in refused(user, "links", peak_bytes_per_s=cell)

    def test_empty_file(self, user: Path) -> None:
        """An empty file has no header; one with a header alone adds nothing."""
        (user / "links.csv").write_bytes(b"")
        assert "links.csv is not usable, row 1, column all: the file is empty" in self.told(user)
        (user / "links.csv").write_text(",".join(REFERENCE["links"].names), "utf8")
        assert load_reference("links", user=user).num_rows == load_reference("links").num_rows

    def test_byte_order_mark_and_windows_lines(self, user: Path) -> None:
        """What spreadsheets write is read."""
        path = put(user, "links")
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
        assert load_reference("links", user=user)["link"].to_pylist()[-1] == "our-link"

    def test_utf_16(self, user: Path) -> None:
        """Another encoding is told, with the row where it is broken."""
        path = put(user, "links")
        path.write_bytes(path.read_text("utf8").encode("utf-16"))
        assert "row 1: it is not UTF-8" in self.told(user)
        put(user, "links", note="x")
        path.write_bytes(path.read_bytes().replace(b"our own box", b"our \xff box"))
        assert "row 2: it is not UTF-8" in self.told(user)

    def test_semicolons(self, user: Path) -> None:
        """A file with semicolons has one column of a strange name."""
        path = put(user, "links")
        path.write_text(path.read_text("utf8").replace(",", ";"), "utf8")
        assert "with commas between them" in self.told(user)

    def test_a_stray_quote(self, user: Path) -> None:
        """The row is told."""
        path = put(user, "links")
        path.write_text(path.read_text("utf8").replace("our own box", '"our" own "box'), "utf8")
        assert "links.csv cannot be read, row 2: " in self.told(user)

    def test_the_same_row_twice(self, user: Path) -> None:
        """A duplicate is told, whatever its case."""
        path = put(user, "links")
        row = path.read_text("utf8").splitlines()[1]
        path.write_text(path.read_text("utf8") + row.replace("our-link", "OUR-Link") + "\n", "utf8")
        assert "row 3, column link: the same as in row 2," in self.told(user)

    @pytest.mark.parametrize("name", ["h100-sxm", "H100-SXM", "h100 sxm"])
    def test_a_name_of_kappa(self, user: Path, name: str) -> None:
        """A row never overrides one of kappa."""
        told = refused(user, "accelerators", accelerator=name)
        assert "a row never overrides another, choose a new name" in told

    def test_too_long(self, user: Path) -> None:
        """A file that is no table of rows is not read to its end; a cell that is too long is told."""
        path = put(user, "links")
        path.write_bytes(b"x" * (4 * 2**20 + 1))
        assert "it is longer than 4,194,304 bytes" in self.told(user)
        put(user, "links", note="x" * 200_000)
        assert "row 2: field larger than field limit" in self.told(user)

    def test_a_folder_in_its_place(self, user: Path) -> None:
        """A folder or a pipe called links.csv is no file."""
        (user / "links.csv").mkdir()
        assert "links.csv cannot be read, it is no file" in self.told(user)

    def test_a_file_in_the_place_of_the_folder(self, tmp_path: Path) -> None:
        """HOME/reference is a folder: rows that were put elsewhere are not lost in silence."""
        user_folder(tmp_path).write_text("link\n", "utf8")
        assert "cannot be read, Not a directory" in self.told(user_folder(tmp_path))

    def test_unreadable(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No permission on the file or on the folder."""
        put(user, "links")

        def denied(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "iterdir", denied)
            assert "reference cannot be read, Permission denied" in self.told(user)
        is_theirs = user / "links.csv"
        opened = Path.open
        monkeypatch.setattr(
            Path, "open", lambda path, *a, **k: denied() if path == is_theirs else opened(path, *a, **k)
        )
        assert "links.csv cannot be read, Permission denied" in self.told(user)

    def test_a_link_to_nothing(self, user: Path) -> None:
        """A broken link is a file that cannot be read."""
        (user / "links.csv").symlink_to(user / "gone")
        assert "links.csv cannot be read, No such file" in self.told(user)

    @pytest.mark.parametrize("name", ["Links.csv", "links.CSV", "link.csv", "paper_links.csv"])
    def test_other_names(self, user: Path, name: str) -> None:
        """A file of another name would be lost in silence."""
        (user / name).write_text("link\n", "utf8")
        assert f"{name} is not usable, no table has that name" in self.told(user)

    def test_what_is_not_looked_at(self, user: Path) -> None:
        """Hidden files and notes may lie there."""
        for name in (".links.csv", "._links.csv", "README.txt", "links.csv~"):
            (user / name).write_text("?", "utf8")
        assert load_reference("links", user=user).equals(load_reference("links"))

    def test_a_day_to_come(self, user: Path) -> None:
        """A source cannot have been read the day after tomorrow, nor before there was a web."""
        day = (dt.datetime.now(dt.UTC) + dt.timedelta(days=2)).date().isoformat()
        assert refused(user, "links", retrieved=day) == f"'{day}' is still to come"
        assert "is not a day" in refused(user, "links", retrieved="0024-05-01")
        assert kept(user, "links", retrieved=dt.datetime.now(dt.UTC).date().isoformat())


class TestShape:
    """A model's figures fit together."""

    @pytest.mark.parametrize(
        ("column", "cell", "told"),
        [
            # full 32, none of the other kinds
            ("layers", 31, "31 is below full + sliding + linear layers, 32"),
            ("kv_heads", 64, "64 is above the query heads"),
            ("layer_params", "9e9", "9e+09 is above the active parameters"),
            ("head_params", "9e9", "9e+09 is above the active parameters"),
            ("experts", 8, "a mixture of experts, and no other model, has a number of experts"),
            ("active_params", "9e9", "9e+09 is above the total"),
        ],
    )
    def test_is_told(self, user: Path, column: str, cell: object, told: str) -> None:
        """With the column that does not fit."""
        assert told in refused(user, "models", **{column: cell})

    def test_a_thousand_times_the_parameters(self, user: Path) -> None:
        """8e12 active parameters with the cache of an 8B model."""
        # 2 x 8e12 / 131,072 = 1.22e8
        told = refused(user, "models", total_params="8e12", active_params="8e12")
        assert told.startswith("8e+12 parameters and 131072 bytes a token are 1.2207e+08 FLOP a byte")

    def test_layers_that_share_a_cache(self, user: Path) -> None:
        """A model of 48 layers of which 32 have a cache of their own."""
        assert kept(user, "models", layers=48)["kv_bytes_per_token"] == 131_072

    def test_a_latent(self, user: Path) -> None:
        """Bytes of a latent follow from its rank and its rotary part."""
        cells = {"attention": "mla", "kv_heads": 1, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
        # 2 x 32 x (512 + 64) = 36,864
        told = refused(user, "models", **cells, kv_bytes_per_token=131_072)
        assert told == "131072 is not 2 bytes x full layers x latent, 36864"


class TestKnownRows:
    """Kappa's own rows as a user's: right ones are never refused, wrong ones always where the name says what it is."""

    FACTORS = (8, 2**30 / 1e9, 2, 1e3, 1e-3, 1e-9, 1e-12)

    @pytest.mark.parametrize("name", ["accelerators", "links", "models"])
    def test_no_false_alarm(self, user: Path, name: str) -> None:
        """Under another name, and under one that begins with their own."""
        table = REFERENCE[name]
        rows = load_reference(name).to_pylist()
        renamed = [
            {c: text(value) for c, value in row.items()} | {table.key[0]: start + row[table.key[0]] + end}
            for row in rows
            for start, end in (("my-", ""), ("", "-mine"))
        ]
        put_all(user, name, renamed)
        assert load_reference(name, user=user).num_rows == 3 * len(rows)

    @pytest.mark.parametrize(
        ("name", "column"),
        [
            ("accelerators", "dense_bf16_flop_per_s"),
            ("accelerators", "sparse_bf16_flop_per_s"),
            ("accelerators", "hbm_bytes"),
            ("accelerators", "hbm_bytes_per_s"),
            ("links", "peak_bytes_per_s"),
        ],
    )
    def test_every_mix_up_beside_a_known_name(self, user: Path, name: str, column: str) -> None:
        """Times 8, 1.0737, 2, 1000 and prefixes the other way; another product's memory may be twice as much."""
        key, seen = REFERENCE[name].key[0], 0
        for row in load_reference(name).to_pylist():
            for factor in self.FACTORS:
                is_other_product = factor == 2 and column.startswith("hbm")
                is_no_unit = factor in self.FACTORS[:2] and column.endswith("flop_per_s")
                if row[column] is None or is_other_product or is_no_unit:
                    continue
                cells = {c: text(value) for c, value in row.items()}
                put_all(user, name, [cells | {key: f"{row[key]}-mine", column: repr(row[column] * factor)}])
                with pytest.raises(KappaError, match="row 2, column"):
                    load_reference(name, user=user)
                seen += 1
        assert seen > 100


def text(value: object) -> str:
    """Return a value as a cell."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def put_all(user: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows with all columns that are typed in."""
    with (user / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, REFERENCE[name].names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


class TestNames:
    """Names are found whatever their case; unknown ones are answered with the nearest."""

    def test_platforms_take_the_spelling_of_the_tables(self, user: Path) -> None:
        """A platform that writes another case is joined like any other."""
        put(user, "accelerators")
        (user / "platforms.csv").write_text(
            "accelerator,link,basis,retrieved,confidence,source\nOur-GPU,PCIe4-X16,physical,2024-05-01,high,us\n",
            "utf8",
        )
        row = load_reference("platforms", user=user).to_pylist()[-1]
        assert (row["accelerator"], row["link"]) == ("our-gpu", "pcie4-x16")

    def test_the_nearest_are_told(self, user: Path) -> None:
        """A misspelt accelerator of a platform."""
        (user / "platforms.csv").write_text(
            "accelerator,link,basis,retrieved,confidence,source\nh10-sxm,pcie4-x16,physical,2024-05-01,high,us\n",
            "utf8",
        )
        with pytest.raises(
            KappaError, match=r"row 2, column accelerator: 'h10-sxm' is not in .*, nearest are h100-sxm"
        ):
            load_reference("platforms", user=user)

    def test_an_exact_name_wins(self) -> None:
        """Two names that differ in case alone are both found, and neither is guessed."""
        assert [find_name(name, ["our-GPU", "OUR-gpu"]) for name in ("OUR-gpu", "our-GPU", "other")] == [
            "OUR-gpu", "our-GPU", None,
        ]  # fmt: skip
        assert find_name("our-gpu", ["our-GPU", "OUR-gpu"]) is None
        assert nearest_names("zzz", ["a", "b"]) == ["a", "b"]


@pytest.mark.parametrize("name", USER_TABLES)
def test_every_figure_has_bounds_and_their_reason(name: str) -> None:
    """No number of a user's file goes unbounded."""
    numbers = [field for field in REFERENCE[name].fields if field.type in (pa.int64(), pa.int32(), pa.float64())]
    assert [f.name for f in numbers if f.minimum is None or f.maximum is None or not f.why_bounds] == []
