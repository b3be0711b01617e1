"""Every example in a docstring gives what it says, in whichever module it stands."""

from __future__ import annotations

import doctest
import importlib

import pytest
from kappa_process import ROOT, Kappa

import kappa

PACKAGES = ("assets", "kappa", "pipelines", "reports", "warehouse")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if ">>>" in path.read_text("utf8")
)
OPTIONS = doctest.ELLIPSIS


def examples_hold(name: str, **names: object) -> None:
    """Run every example of a module with these names beside its own."""
    result = doctest.testmod(importlib.import_module(name), extraglobs=names, optionflags=OPTIONS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in MODULES if name.partition(".")[0] != "kappa"])
def test_examples_hold(name: str) -> None:
    """The examples need nothing but their module."""
    examples_hold(name)


@pytest.mark.parametrize("name", [name for name in MODULES if name.partition(".")[0] == "kappa"])
def test_examples_of_the_api_hold(name: str, sample_home: Kappa) -> None:
    """The examples of the API have the sample's warehouse as `sample`, and its folder as `sample_home`."""
    with kappa.open(sample_home.home) as sample:
        examples_hold(name, sample=sample, sample_home=sample_home.home)


def test_every_package_has_examples() -> None:
    """The search for examples finds them."""
    assert {name.partition(".")[0] for name in MODULES} == set(PACKAGES)
