"""HOME/workloads/NAME.toml: what a user declares of a workload, checked key by key, written and removed."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, field_validator, model_validator

from pipelines.workloads.formats import format_named, formats
from pipelines.workloads.sets import workloads
from warehouse.errors import ErrorCode, KappaError, write_code
from warehouse.home.atomic import whole
from warehouse.toml_text import toml_of

FOLDER = "workloads"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Names of jobs in the graph.
_TAKEN = ("everything", "sample")


class Declaration(BaseModel):
    """One declared workload.

    Attributes:
        format: A key of `pipelines.workloads.formats.formats()`.
        path: A file, a folder or a glob; a relative one is below the home folder.
        repo: A data set repository on the Hub, in the place of `path`.
        files: Which of its files, as globs; all files of records where it is empty.
        revision: Its branch, tag or commit.
        title: What it is called in the report.
        licence: Its licence.
        keep_text: Whether texts stay in staging after they were counted.
        salt: A secret in the identities of blocks of text, of the format `requests`.
        fields: Dotted paths by role, where names differ from those of the format.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str
    path: str | None = Field(None, min_length=1)
    repo: str | None = Field(None, pattern=r"^[\w.-]+/[\w.-]+$")
    files: tuple[str, ...] = ()
    revision: str | None = Field(None, min_length=1)
    title: str | None = None
    licence: str | None = None
    keep_text: StrictBool = True
    salt: str | None = Field(None, min_length=1, repr=False)
    fields: dict[str, str] = {}

    @field_validator("format")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in formats():
            raise ValueError(f"is {name!r}, known are {', '.join(formats())}")
        return name

    @model_validator(mode="after")
    def _fits(self) -> Declaration:
        if (self.path is None) == (self.repo is None):
            raise ValueError("needs one of path and repo")
        if self.path is not None and (self.files or self.revision):
            raise ValueError("has files or revision, which belong to repo")
        if self.salt is not None and format_named(self.format).kind != "prompts":
            raise ValueError("has a salt, which belongs to the format requests: no other has identities of text")
        require_roles(self.format, self.fields)
        return self

    def text(self) -> str:
        """Return it as TOML."""
        given = self.model_dump(exclude_defaults=True)
        fields = given.pop("fields", {})
        lines = [f"{key} = {_toml(value)}" for key, value in given.items()]
        if fields:
            lines += ["", "[fields]", *(f"{role} = {_toml(path)}" for role, path in fields.items())]
        return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def require_roles(format_name: str, fields: dict[str, str]) -> None:
    """Raise ValueError where a role is none of the format's, or has no path."""
    known = [role.name for role in format_named(format_name).roles]
    for role, path in fields.items():
        if role not in known or not path:
            raise ValueError(f"has the field {role!r}, the roles of {format_name} are {', '.join(known)}")


def declared_in(home: Path) -> dict[str, Declaration]:
    """Return the declared workloads of a home folder by name, sorted.

    Raises:
        KappaError: a file is not usable; the error names file and key.
    """
    folder = home / FOLDER
    paths = sorted(folder.glob("*.toml")) if folder.is_dir() else []
    return {path.stem: read_declaration(path) for path in paths if not path.name.startswith(".")}


def read_declaration(path: Path) -> Declaration:
    """Return the declaration of one file.

    Raises:
        KappaError: it is not usable.
    """
    require_name(path.stem, path)
    try:
        return Declaration.model_validate(toml_of(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key, ours = ".".join(map(str, first["loc"])), first.get("ctx", {}).get("error")
        words = "is missing" if first["type"] == "missing" else ours or first["msg"]
        why = f"key '{key}' {words}" if key else f"it {words}"
    except OSError as error:
        why = error.strerror or str(error)
    except ValueError as error:
        why = str(error)
    raise KappaError(f"{path} is not usable", why, "correct the file", code=ErrorCode.BAD_TOML)


def require_name(name: str, shown: object) -> None:
    """Raise KappaError where a workload cannot have this name."""
    why = None
    if not _NAME.fullmatch(name):
        why, code = "a name is letters, digits, dots, hyphens and underscores, and begins with one of the first", "bad"
    elif name in workloads() or name in _TAKEN:
        why, code = f"{name} is the name of a built-in workload or job", "taken"
    if why is not None:
        kind = ErrorCode.NAME_CLASH if code == "taken" else ErrorCode.BAD_PATH
        raise KappaError(f"{shown} cannot name a workload", why, "choose another name", code=kind)


def path_of(home: Path, name: str) -> Path:
    """Return the place of a declaration."""
    return home / FOLDER / f"{name}.toml"


def write_declaration(home: Path, name: str, declaration: Declaration) -> Path:
    """Write a declaration, in the place of one of the same name; return its path.

    Raises:
        KappaError: another name gives the same job in the graph, or the file cannot be written.
    """
    require_name(name, name)
    same = [other for other in declared_in(home) if other != name and job_name(other) == job_name(name)]
    if same:
        why = f"{same[0]} differs from it in a sign that a job's name cannot hold"
        raise KappaError(f"{name} cannot name a workload", why, "choose another name", code=ErrorCode.NAME_CLASH)
    path = path_of(home, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            file.write(declaration.text().encode())
    except OSError as error:
        why = error.strerror or str(error)
        raise KappaError(
            f"{path} could not be written", why, "choose another --home", code=write_code(error)
        ) from error
    return path


def job_name(name: str) -> str:
    """Return the name of a workload's job in the graph."""
    return re.sub(r"\W", "_", name)
