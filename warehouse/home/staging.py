"""Products of single steps, each built in a draft folder and put in its place by one rename.

A product is a folder `NAME/IDENTITY/` with files and a `meta.json`; `NAME/HEAD` names the newest. The identity is a
hash of everything that the product depends on: a step whose inputs did not change finds its product and does nothing,
and a run that was killed finds what it had finished.
"""

from __future__ import annotations

import fcntl
import json
import logging
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from warehouse.errors import ErrorCode, KappaError
from warehouse.home.contents import contents_of, differences
from warehouse.home.locks import hold, remove_unheld
from warehouse.home.products import CONTENTS, INPUTS, Draft, Inputs, Product, changes, identity_of

META = "meta.json"
HEAD = "HEAD"
LOG = logging.getLogger("kappa")


class Staging:
    """The products under one folder."""

    def __init__(self, root: Path) -> None:
        """Use `root`, which is created when the first product is built."""
        self.root = root

    def find(self, name: str, identity: str) -> Product | None:
        """Return the product of exactly these inputs, or None; one whose files are gone or cut counts as none."""
        folder = self.root / name / identity
        meta = _meta_of(folder)
        return None if meta is None else Product(name, folder, identity, meta)

    def reuse(self, name: str, identity: str) -> Product | None:
        """Return the product of exactly these inputs, made the newest of its name, or None where it must be built."""
        product = self.find(name, identity)
        if product is not None:
            self.point(name, identity)
        return product

    def reuse_whole(self, name: str, identity: str) -> Product | None:
        """Return the same after reading every byte; one changed since, or built without sha256, is taken away."""
        product = self.find(name, identity)
        if product is not None and not product.is_whole():
            self._discard(product.folder)
        return self.reuse(name, identity)

    def newest(self, name: str) -> Product | None:
        """Return the newest product of that name, or None."""
        try:
            identity = (self.root / name / HEAD).read_text("utf8").strip()
        except FileNotFoundError:
            return None
        return self.find(name, identity)

    def require(self, name: str) -> Product:
        """Return the newest product of that name.

        Raises:
            KappaError: it was never built.
        """
        product = self.newest(name)
        if product is None:
            raise KappaError(
                f"{name} is missing",
                "it was never built here",
                "materialize it first, or run `kappa run`",
                code=ErrorCode.NOT_BUILT,
            )
        return product

    def names(self, prefix: str) -> list[str]:
        """Return the names of all products below `prefix`, sorted."""
        base = self.root / prefix
        heads = base.rglob(HEAD) if base.is_dir() else iter(())
        return sorted(str(head.parent.relative_to(self.root)) for head in heads)

    def amend(self, product: Product, **notes: object) -> Product:
        """Return the product with these notes replaced: what is no input, such as where a file lies on this machine."""
        meta = {**product.meta, **notes}
        if meta != product.meta:
            temporary = _unique(product.folder, META)
            temporary.write_text(json.dumps(meta, indent=1, sort_keys=True), "utf8")
            temporary.replace(product.folder / META)
        return Product(product.name, product.folder, product.identity, meta)

    @contextmanager
    def build(
        self, name: str, identity: str = "", *, inputs: Inputs | None = None, is_deep: bool = True
    ) -> Iterator[Draft]:
        """Yield a draft; when the block ends without an error the draft becomes the newest product of that name.

        Args:
            name: what the product is called.
            identity: a hash of everything that it depends on; by default that of `inputs`.
            inputs: everything that it depends on, by name; noted, and a log line names what changed since then.
            is_deep: note the sha256 of every file with its size, as `reuse_whole` needs it; that reads every byte.
        """
        place, identity = self.root / name, identity or identity_of(**inputs or {})
        self._tell_why(name, inputs or {})
        with _named(place), self._new_draft(place) as draft:
            yield draft
            draft.meta |= {CONTENTS: contents_of(draft.folder, is_deep=is_deep), INPUTS: inputs}
            notes = json.dumps(draft.meta, indent=1, sort_keys=True, default=str)
            (draft.folder / META).write_text(notes, "utf8")
            with self._alone():
                self._adopt(draft.folder, place / identity)
                self._point(place, identity)

    def _tell_why(self, name: str, inputs: Inputs) -> None:
        """Log which inputs are not those of the newest product: why the step is done again."""
        newest = self.newest(name)
        before = newest.meta.get(INPUTS) if newest else None
        if before and inputs and (changed := changes(before, inputs)):
            LOG.info("%s is made again: %s changed", name, ", ".join(changed))

    @contextmanager
    def _new_draft(self, place: Path) -> Iterator[Draft]:
        """Yield an empty draft that this process holds, and remove what is left of it."""
        while True:
            folder = _unique(place, "draft")
            folder.mkdir(parents=True)
            with hold(folder) as is_ours:
                # Between the two lines above another process may have taken it for one that was left behind.
                if is_ours:
                    try:
                        yield Draft(folder)
                    finally:
                        shutil.rmtree(folder, ignore_errors=True)
                    return

    def _adopt(self, folder: Path, target: Path) -> None:
        """Move the draft to its place; one that another process finished meanwhile has the same content and stays."""
        if _meta_of(target) is not None:
            return
        shutil.rmtree(target, ignore_errors=True)
        try:
            folder.rename(target)
        except OSError:
            if _meta_of(target) is None:
                raise

    def point(self, name: str, identity: str) -> None:
        """Make that product the newest of its name and remove the older ones."""
        with self._alone():
            self._point(self.root / name, identity)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the staging against other processes for a moment; a process that dies lets go of it."""
        with (self.root / ".lock").open("a+") as handle:
            fcntl.lockf(handle, fcntl.LOCK_EX)
            yield

    def _point(self, place: Path, identity: str) -> None:
        temporary = _unique(place, "head")
        temporary.write_text(identity, "utf8")
        own = (place / identity / META).stat().st_mtime_ns
        temporary.replace(place / HEAD)
        if not (place / identity / META).exists():
            newest = max(place.glob(f"*/{META}"), key=lambda meta: meta.stat().st_mtime_ns)
            self._point(place, newest.parent.name)
        for meta in place.glob(f"*/{META}"):
            if meta.parent.name != identity and self._is_older(meta, own):
                self._discard(meta.parent)

    def discard(self, product: Product) -> None:
        """Take a product away, so that the next step that needs it makes it again."""
        self._discard(product.folder)

    @staticmethod
    def _discard(folder: Path) -> None:
        """Take a product away as a whole: a kill in the middle of removing it leaves no half that looks whole."""
        waste = _unique(folder.parent, "draft")
        with suppress(FileNotFoundError):
            folder.rename(waste)
        shutil.rmtree(waste, ignore_errors=True)

    @staticmethod
    def _is_older(meta: Path, own: int) -> bool:
        """Whether a product was finished before ours: a later one may be what another process is about to point at."""
        try:
            return meta.stat().st_mtime_ns <= own
        except FileNotFoundError:
            return False

    @contextmanager
    def reading(self, product: Product) -> Iterator[None]:
        """Take a product away whose files turn out to be damaged though they have their sizes.

        Raises:
            KappaError: a file of its is no Arrow or Parquet file any more, or holds text that is not UTF-8.
        """
        import pyarrow as pa  # noqa: PLC0415 - slow, and loaded by whoever reads

        try:
            yield
        except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
            # One with a number comes from the disk, and says itself what is wrong.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self._discard(product.folder)
            why = f"its files were changed since they were written ({' '.join(str(error).split())[:200]})"
            raise KappaError(
                f"{product.name} cannot be read", why, "run again: it is then built anew", code=ErrorCode.DAMAGED
            ) from error

    def drafts(self) -> list[Path]:
        """Return the folders of drafts, those of living processes and those that killed ones left."""
        return sorted(self.root.rglob(".draft-*"))

    def remove_drafts(self) -> None:
        """Remove what killed processes left; a draft of a living process stays."""
        for draft in self.drafts():
            remove_unheld(draft)


def _meta_of(folder: Path) -> dict[str, Any] | None:
    """Return the notes of a product whose files are all there with their sizes, else None."""
    try:
        meta = dict(json.loads((folder / META).read_text("utf8")))
    except (FileNotFoundError, ValueError):
        return None
    return None if differences(folder, meta.get(CONTENTS, {}), is_deep=False) else meta


@contextmanager
def _named(place: Path) -> Iterator[None]:
    """Give an error of the disk that names no file, as one of writing into an open file, the product's name."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(place)
        raise


def _unique(folder: Path, kind: str) -> Path:
    return folder / f".{kind}-{uuid.uuid4().hex[:12]}"
