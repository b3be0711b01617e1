"""An accelerator through PyTorch, an optional extra. `timing` decides which measurements are made, and why."""

from __future__ import annotations

import importlib
import time
from typing import Any

from warehouse.errors import ErrorCode, KappaError

# Seconds of products before the timing: clocks and temperature are then those of a long prefill.
WARM_UP_S = 2.0
PRODUCTS_A_REPETITION = 10
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp8": "float8_e4m3fn"}


def open_device() -> TorchDevice:
    """Return the accelerator of this machine.

    Raises:
        KappaError: PyTorch is not installed, or sees no accelerator.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise KappaError(
            "nothing was measured",
            "PyTorch is not installed",
            "install it on a machine with an accelerator",
            code=ErrorCode.NO_TORCH,
        ) from error
    if not torch.cuda.is_available():
        raise KappaError(
            "nothing was measured",
            f"PyTorch {torch.__version__} sees no accelerator",
            "run this on a machine that has one, with a PyTorch built for it",
            code=ErrorCode.NO_ACCELERATOR,
        )
    return TorchDevice(torch)


class TorchDevice:
    """The first accelerator that PyTorch sees; a `measuring.Device`."""

    def __init__(self, torch: Any) -> None:  # noqa: ANN401 - the module, which is not installed everywhere
        """Use the module `torch`."""
        self._torch = torch
        self.name = str(torch.cuda.get_device_name(0))
        self.library_version = str(torch.__version__)
        runtimes = {"CUDA": torch.version.cuda, "ROCm": getattr(torch.version, "hip", None)}
        self.runtime_version = next((f"{name} {value}" for name, value in runtimes.items() if value), None)

    def copy_seconds(self, memory: str, direction: str, size: int, repetitions: int) -> list[float]:
        """Return the seconds of copies of `size` bytes after an untimed one."""
        torch = self._torch
        here = torch.empty(size, dtype=torch.uint8, device="cuda")
        if memory == "device":
            other = torch.empty_like(here)
        else:
            # Pages are touched first, so that no copy includes their first use.
            other = torch.zeros(size, dtype=torch.uint8, pin_memory=memory == "pinned")
        source, target = (here, other) if direction == "to_host" else (other, here)
        is_pinned = memory != "pageable"
        return [self._timed(lambda: target.copy_(source, non_blocking=is_pinned)) for _ in range(repetitions + 1)][1:]

    def matmul_seconds(self, dtype: str, rows: int, repetitions: int) -> list[float] | None:
        """Return the seconds of one product, sustained; None where the device or library lacks such products."""
        try:
            product = self._product(dtype, rows)
            product()
        except (AttributeError, RuntimeError, NotImplementedError, ValueError):
            return None
        end = time.perf_counter() + WARM_UP_S
        while time.perf_counter() < end:
            self._timed(lambda: [product() for _ in range(PRODUCTS_A_REPETITION)])
        rounds = (self._timed(lambda: [product() for _ in range(PRODUCTS_A_REPETITION)]) for _ in range(repetitions))
        return [seconds / PRODUCTS_A_REPETITION for seconds in rounds]

    def _product(self, dtype: str, rows: int) -> Any:  # noqa: ANN401 - a function that returns a tensor
        torch = self._torch
        kind = getattr(torch, _DTYPES[dtype])
        # Random numbers: matrices of zeros draw less power and run faster than real ones.
        left, right = (torch.randn(rows, rows, device="cuda", dtype=torch.float16).to(kind) for _ in range(2))
        if dtype != "fp8":
            return lambda: left @ right
        one = torch.ones((), device="cuda", dtype=torch.float32)
        # The fp8 product needs its second matrix in column-major order.
        columns = right.t()
        return lambda: torch._scaled_mm(left, columns, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: SLF001

    def _timed(self, action: Any) -> float:  # noqa: ANN401
        """Return the seconds of an action on the device, with synchronisation before and after it."""
        self._torch.cuda.synchronize()
        start = time.perf_counter()
        action()
        self._torch.cuda.synchronize()
        return time.perf_counter() - start
