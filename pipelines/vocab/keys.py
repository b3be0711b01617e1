"""Types of the keys of a tokenizer's TOML, each with its check. What the keys mean is in `specs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo


def _none_twice(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(texts)) < len(texts):
        raise ValueError("has a text twice")
    return texts


def with_role(header: str) -> str:
    """Refuse a header without the place of the role."""
    if "{role}" not in header:
        raise ValueError("has no {role}")
    return header


def numbered(name: str) -> str:
    """Refuse a name without the place of the number."""
    if "{}" not in name:
        raise ValueError("has no {} for the number")
    return name


def regular_expression(pattern: str) -> str:
    """Refuse what the pre-tokenizer could not compile."""
    import regex  # noqa: PLC0415 - Python's own has no Unicode classes

    try:
        regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return pattern


def template(file: Path, info: ValidationInfo) -> Path:
    """Return the path of a template in the folder of the TOML file."""
    import jinja2  # noqa: PLC0415 - slow to import

    place: Path = (info.context or Path()) / file
    if not place.is_file():
        raise ValueError("names no file beside it")
    try:
        jinja2.Environment(autoescape=True, extensions=["jinja2.ext.loopcontrols"]).parse(place.read_text("utf8"))
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(f"is not a template: {error.message} in line {error.lineno} of {file}") from error
    return place


def beside(file: Path, info: ValidationInfo) -> Path:
    """Return the path of a file that is named from the folder of the TOML file."""
    return Path(info.context or Path()) / file


Text = Annotated[str, Field(min_length=1)]
AnyTexts = Annotated[tuple[Text, ...], AfterValidator(_none_twice)]
Texts = Annotated[AnyTexts, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(strict=True, gt=0)]
