"""`kappa doctor`: checks what works here, one line per check. It changes nothing and shows no secret."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from assets.commands import doctor_home
from assets.commands.cli import readable
from assets.commands.doctor_own import own_checks
from assets.commands.screen import write_line
from pipelines.steps.inputs import code_version
from pipelines.vocab.specs import tokenizer_spec
from pipelines.workloads.sets import workloads
from warehouse.declared.formats import quantity
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.tokenizer_names import tokenizer_names
from warehouse.home.home import Home, home_path
from warehouse.masking import masked

LIBRARIES = ("dagster", "duckdb", "pyarrow", "datasets", "huggingface_hub", "transformers", "tokenizers", "fastokens")
NEEDED_BYTES = 12 * 10**9
# Neither the real run nor the sample works without these.
NEEDED = ("home folder", "own rows")
HOME: dict[str, Callable[[Home], str]] = {
    "home folder": doctor_home.usable,
    "own rows": doctor_home.own_rows,
    "beside own rows": doctor_home.beside_own_rows,
    "warehouse": doctor_home.warehouse,
    "lake": doctor_home.lake,
    "report": doctor_home.report,
    "generations kept": doctor_home.generations,
    "staging": doctor_home.staging,
    "left by killed runs": doctor_home.left_over,
}


@dataclass(frozen=True)
class Finding:
    """One line: whether the check passed, its subject, and the details."""

    is_fine: bool
    what: str
    how: str


def doctor(options: argparse.Namespace) -> int:
    """Print what works; exit code 1 if neither the real run nor the sample can run."""
    home = Home(home_path(options.home))
    findings = list(_findings(home))
    for finding in findings:
        mark = ("ok", "green") if finding.is_fine else ("no", "bold red")
        write_line([mark, (masked(f"  {finding.what:28} {finding.how}"), "")], sys.stdout)
    return 0 if all(finding.is_fine for finding in findings if finding.what in NEEDED) else 1


def _findings(home: Home) -> Iterator[Finding]:
    yield Finding(True, "kappa", f"{code_version()} on Python {platform.python_version()}")
    yield Finding(True, "libraries", ", ".join(f"{name} {_version(name)}" for name in LIBRARIES))
    for what, look in HOME.items():
        yield _try(what, partial(look, home))
    for what, check in own_checks(home):
        yield _try(what, check)
    yield _disk("disk of the home folder", home.path)
    yield _disk("disk of the Hub's cache", _cache_folder())
    yield Finding(True, "HF_TOKEN", "set" if _has_token() else "not set (needed for gated repositories only)")
    for name, workload in workloads().items():
        yield _try(f"Hub: {name}", lambda repo_id=workload.repo_id: _revision(repo_id))  # type: ignore[misc]
    for name in tokenizer_names():
        yield _tokenizer(name)


def _try(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(True, what, look())
    except Exception as error:  # noqa: BLE001 - the doctor reports every failure
        return Finding(False, what, str(readable(error)))


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _disk(what: str, path: Path) -> Finding:
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    return Finding(
        free >= NEEDED_BYTES,
        what,
        f"{quantity(free, 'B')} free at {there}; the full sets need about {quantity(NEEDED_BYTES, 'B')}",
    )


def _cache_folder() -> Path:
    from huggingface_hub import constants  # noqa: PLC0415 - slow to import

    return Path(constants.HF_HUB_CACHE)


def _has_token() -> bool:
    from huggingface_hub import get_token  # noqa: PLC0415

    return get_token() is not None


def _revision(repo_id: str) -> str:
    from huggingface_hub import HfApi, constants  # noqa: PLC0415

    from pipelines.fetch.cache import guard_client  # noqa: PLC0415
    from pipelines.fetch.hub import hub_failure, unreachable  # noqa: PLC0415

    if constants.HF_HUB_OFFLINE:
        raise KappaError(
            f"{repo_id} was not asked", "HF_HUB_OFFLINE is set", "unset it to ask the Hub", code=ErrorCode.OFFLINE
        )
    guard_client()
    try:
        info = HfApi().dataset_info(repo_id, revision="main", timeout=5)
    except Exception as error:
        raise hub_failure(repo_id, error) or unreachable(repo_id, error) from error
    return f"{repo_id} at {str(info.sha)[:12]}"


def _tokenizer(name: str) -> Finding:
    what = f"tokenizer: {name}"
    try:
        spec = tokenizer_spec(name)
    except KappaError as error:
        return Finding(False, what, str(error))
    source = spec.vocabulary
    package = "missing" if source is None else _version(source.distribution)
    has_package = package != "missing"
    offline = (
        f"{source.distribution} {package}"
        if source is not None and has_package
        else "the offline extra is not installed"
    )
    return Finding(has_package, what, f"without the Hub: {offline}; with it: {', '.join(spec.repositories)}")
