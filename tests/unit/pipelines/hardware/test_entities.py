"""The types of sourced rows hold the columns that the tables declare, and no other."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pipelines.hardware import entities as e
from pipelines.hardware.machines import Sources, read_sources
from warehouse.declared.schema import Table
from warehouse.declared.tables import KAPPA_CRIT, MODELS
from warehouse.hardware_rows.reference_tables import REFERENCE

KINDS = {"string": "str", "int64": "int", "double": "float", "bool": "bool"}
TYPES: dict[type, Table] = {
    e.Model: MODELS,
    e.KappaCrit: KAPPA_CRIT,
    e.Accelerator: REFERENCE["accelerators"],
    e.Link: REFERENCE["links"],
    e.Platform: REFERENCE["platforms"],
    e.Measured: REFERENCE["measured"],
    e.Headline: REFERENCE["headlines"],
    e.PaperModel: REFERENCE["paper_models"],
    e.PaperAccelerator: REFERENCE["paper_accelerators"],
    e.PaperLink: REFERENCE["paper_links"],
}


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_a_type_is_its_table(kind: type) -> None:
    """Names in their order, types, and what may be NULL."""
    declared = [(f.name, KINDS[str(f.type)] + " | None" * f.nullable) for f in TYPES[kind].fields]
    assert [(f.name, f.type) for f in fields(kind)] == declared


def test_a_column_that_is_not_declared_is_no_row() -> None:
    """A misspelt or missing column fails where the row enters, not where it is read."""
    link = {f.name: None for f in fields(e.Link)}
    assert len(e.typed(e.Link, [link])) == 1
    for broken in (link | {"peak_byte_per_s": 1.0}, {name: link[name] for name in link if name != "kind"}):
        with pytest.raises(TypeError):
            e.typed(e.Link, [broken])


def test_no_row_is_lost_under_its_name() -> None:
    """A name stands once in a table, so that a row is found by it."""
    sources: Sources = read_sources()
    assert len(sources.models) == len({row.model for row in sources.models.values()})
    assert [*sources.links] == [row.link for row in sources.links.values()]
    assert sources.models["llama-3.1-70b"].flops_per_token == 2 * 70_553_706_496
