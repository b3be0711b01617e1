"""The resource of the graph: the home folder, and whether a run uses the real data sets or the sample."""

from __future__ import annotations

import dagster as dg

from pipelines.fetch.hub import Hub, HuggingFaceHub, SampleHub
from pipelines.generated.writing import sample_revision, write_sample
from pipelines.workloads.sets import samples
from warehouse.errors import ErrorCode, KappaError
from warehouse.home.home import Home, home_path
from warehouse.home.staging import Staging


class KappaHome(dg.ConfigurableResource[None]):
    """The home folder that stores products, and the source of the data sets."""

    home: str = ""
    sample: bool = False

    def folder(self) -> Home:
        """Return the home, prepared for writing.

        Raises:
            KappaError: it is not writable, or holds real results that a sample would replace.
        """
        home = Home(home_path(self.home))
        home.prepare()
        if self.sample:
            refuse_sample_over_real(home)
        return home

    def staging(self) -> Staging:
        """Return the products of this kind of run."""
        return self.folder().staging(is_sample=self.sample)

    def hub(self) -> Hub:
        """Return the Hub, or the generated sample, which is written on first use."""
        if not self.sample:
            return HuggingFaceHub()
        root = write_sample(self.staging().root / "files", samples())
        return SampleHub(root, sample_revision(root))


def refuse_sample_over_real(home: Home) -> None:
    """Raise KappaError if the current generation was made from the real data sets."""
    note = home.current_note()
    if note is not None and not note["is_sample"]:
        raise KappaError(
            f"{home.path} holds results of the real data sets",
            "a sample would take their place",
            "give the sample a folder of its own with --home",
            code=ErrorCode.SAMPLE_OVER_REAL,
        )
