"""Reads sourced rows, typed and checked: those of kappa and those that a user keeps in the home folder."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa

from warehouse.declared.hardware_fields import CONFIDENCES
from warehouse.declared.schema import Table
from warehouse.hardware_rows.cells import failure, shown, typed_value
from warehouse.hardware_rows.checks import check_figures
from warehouse.hardware_rows.files import (
    FOLDER,
    Placed,
    read_rows,
    unread_files,
    user_files,
    user_folder,
    user_rows_identity,
)
from warehouse.hardware_rows.mixups import check_against_known, check_measured
from warehouse.hardware_rows.names import find_name, folded, nearest_names
from warehouse.hardware_rows.reference_tables import NAMES_FROM, REFERENCE
from warehouse.hardware_rows.shapes import figure, indexer_bytes
from warehouse.hardware_rows.tokenizer_names import tokenizer_names

__all__ = [
    "FOLDER", "REFERENCE", "check_new_rows", "load_reference", "unread_files", "user_files", "user_folder",
    "user_rows_identity",
]  # fmt: skip


def load_reference(name: str, folder: Path = FOLDER, user: Path | None = None) -> pa.Table:
    """Return one table of sourced rows, in the order of its file, then the user's.

    Args:
        name: A key of `REFERENCE`. `models` comes without `flops_per_token`, which is computed and not typed in, and
            without the columns of `indexers`.
        folder: Where `name`.csv is, and the tables whose names it uses.
        user: The folder of a user's own rows, HOME/reference; None or a folder that is not there adds nothing. Files
            there may leave out columns that may be empty. A name that exists is refused: a row never overrides.

    Raises:
        KeyError: No such table.
        KappaError: A row cannot be used; the message names file, row (the header is row 1) and column.
    """
    table = REFERENCE[name]
    own = read_rows(folder / f"{name}.csv", table)
    theirs = [row for path in user_files(user) if path.stem == name for row in read_rows(path, table, may_omit=True)]
    _check(name, own, theirs, folder, user)
    return table.rows([row.values for row in (*own, *theirs)])


def check_new_rows(name: str, path: Path, rows: list[dict[str, str]], user: Path | None) -> None:
    """Check the rows that are to become a user's file, as they would be when it is read.

    Args:
        name: A key of `REFERENCE`.
        path: The file, for messages.
        rows: Its rows, text by column.
        user: The folder of a user's own rows, with whatever other files it holds.

    Raises:
        KappaError: A row cannot be used.
    """
    table = REFERENCE[name]
    theirs = [
        Placed(path, number, {f.name: typed_value(path, number, f, row[f.name]) for f in table.fields}, row)
        for number, row in enumerate(rows, 2)
    ]
    _check(name, read_rows(FOLDER / f"{name}.csv", table), theirs, FOLDER, user)


def _check(name: str, own: list[Placed], theirs: list[Placed], folder: Path, user: Path | None) -> None:
    rows = [*own, *theirs]
    _check_key(REFERENCE[name], rows)
    for column, other in NAMES_FROM.get(name, {}).items():
        _resolve_names(rows, column, _known(name, column, other, folder, user))
    check_figures(rows)
    _check_days(theirs)
    check_against_known(name, theirs, own)
    if name == "measured":
        check_measured(
            theirs, *(load_reference(table, folder, user).to_pylist() for table in ("accelerators", "links"))
        )
    if name == "models":
        _check_tokenizers(rows)
    if name == "indexers":
        _check_indexers(rows, folder, user)
    if name == "platforms":
        _check_platforms(rows, folder)
        _lower_confidence(rows, folder, user)
    if name == "headlines":
        _check_headlines(rows, folder, user)


def _check_key(table: Table, rows: list[Placed]) -> None:
    seen: dict[tuple[object, ...], Placed] = {}
    for row in rows:
        values = (row.values[column] for column in table.key)
        key = tuple(folded(value) if isinstance(value, str) else value for value in values)
        if key in seen:
            is_same_file = seen[key].path == row.path
            where = "" if is_same_file else f" of {seen[key].path}: a row never overrides another, choose a new name"
            raise failure(row.path, row.number, ", ".join(table.key), f"the same as in row {seen[key].number}{where}")
        seen[key] = row


def _check_days(rows: list[Placed]) -> None:
    """Refuse a user's day that is still to come; one day is left for time zones."""
    tomorrow = (dt.datetime.now(dt.UTC) + dt.timedelta(days=1)).date().isoformat()
    for path, number, values, _ in rows:
        day = values.get("retrieved")
        if isinstance(day, str) and day > tomorrow:
            raise failure(path, number, "retrieved", f"{shown(day)} is still to come")


def _known(name: str, column: str, other: str, folder: Path, user: Path | None) -> list[str]:
    """Return the names that a column may hold; a measured machine may be one that no other table knows."""
    names = list(load_reference(other, folder, user)[column].to_pylist())
    if name == "headlines" and column != "model":
        names += load_reference("measured", folder, user)[column].to_pylist()
    return names


def _resolve_names(rows: list[Placed], column: str, names: list[str]) -> None:
    """Put the name's own spelling in the place of the one given."""
    for path, number, values, _ in rows:
        given = values[column]
        if not isinstance(given, str):
            continue
        found = find_name(given, names)
        if found is None:
            near = ", ".join(nearest_names(given, names))
            raise failure(path, number, column, f"{shown(given)} is not in {column}s.csv, nearest are {near}")
        values[column] = found


def _check_platforms(rows: list[Placed], folder: Path) -> None:
    paper = {name: set(load_reference(f"paper_{name}s", folder)[name].to_pylist()) for name in ("accelerator", "link")}
    for path, number, values, _ in rows:
        for column, names in paper.items():
            if values["basis"] == "paper" and values[column] not in names:
                raise failure(path, number, column, f"{values[column]!r} is not among the paper's inputs")


def _lower_confidence(rows: list[Placed], folder: Path, user: Path | None) -> None:
    """Make each physical platform at most as sure as its accelerator and its link; the paper has inputs of its own."""
    for kind in ("accelerator", "link"):
        sure = {row[kind]: row["confidence"] for row in load_reference(f"{kind}s", folder, user).to_pylist()}
        for _, _, values, _ in rows:
            if values["basis"] == "physical":
                values["confidence"] = max(str(values["confidence"]), sure[values[kind]], key=CONFIDENCES.index)


def _check_tokenizers(rows: list[Placed]) -> None:
    """Put the tokenizer's own spelling in the place of the one given."""
    names = tokenizer_names()
    for path, number, values, _ in rows:
        given = str(values["tokenizer"])
        found = find_name(given, names)
        if found is None:
            why = (
                f"{shown(given)} is no tokenizer of kappa, which are {', '.join(names)}: give the one whose counts "
                "come nearest, and is_tokenizer_proxy true"
            )
            raise failure(path, number, "tokenizer", why)
        values["tokenizer"] = found


def _check_indexers(rows: list[Placed], folder: Path, user: Path | None) -> None:
    """Refuse an indexer of a model that has none, or whose keys are not as wide as the model's bytes say."""
    models = {row["model"]: row for row in load_reference("models", folder, user).to_pylist()}
    for path, number, values, _ in rows:
        model, width = models[values["model"]], figure(values, "index_head_dim") or 0.0
        if model["attention"] != "mla+indexer":
            raise failure(path, number, "model", f"the attention of {values['model']} is {model['attention']}")
        expected = indexer_bytes(model["full_attention_layers"], width)
        if expected != model["indexer_bytes_per_token"]:
            why = f"{width:g} makes {expected:g} indexer_bytes_per_token, {values['model']} has "
            raise failure(path, number, "index_head_dim", f"{why}{model['indexer_bytes_per_token']:g}")


def _check_headlines(rows: list[Placed], folder: Path, user: Path | None) -> None:
    models = {row["model"]: row["confidence"] for row in load_reference("models", folder, user).to_pylist()}
    platforms = {
        (row["accelerator"], row["link"], row["basis"]): row["confidence"]
        for row in load_reference("platforms", folder, user).to_pylist()
    }
    measured = load_reference("measured", folder, user).to_pylist()
    platforms |= {(row["accelerator"], row["link"], "measured"): "high" for row in measured}
    for path, number, values, _ in rows:
        platform = (values["accelerator"], values["link"], values["basis"])
        if (values["model"] is None) == (platform == (None, None, None)):
            raise failure(path, number, "model", "a row names one model or one platform")
        confidence = platforms.get(platform) if values["model"] is None else models[values["model"]]
        if confidence in (None, "secondary"):
            raise failure(path, number, "model, accelerator", "is no platform, or is known only second-hand")
