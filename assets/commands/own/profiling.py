"""The run of one own workload: for `kappa profile`, and as a process for `kappa.profile`, which may not import it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from assets.commands.crit.text import View, answer_text
from assets.commands.running import build
from kappa.asking import answers_of
from pipelines.hardware.questions.question import CritQuestion
from pipelines.vocab.specs import tokenizer_spec, tokenizer_specs
from pipelines.workloads.own import adding
from pipelines.workloads.own.sources import name_of_source
from warehouse.home.home import Home


def profiled(home: Home, added: adding.Added, tokenizers: list[str]) -> None:
    """Declare a workload, count it and publish it beside what the home folder holds.

    Raises:
        KappaError: a step failed; the last good generation is as it was.
    """
    chosen = [tokenizer_spec(name).name for name in dict.fromkeys(tokenizers)] or list(tokenizer_specs())
    adding.write(home, added)
    build(home, [added.name], chosen, is_sample=False)


def verdict(home: Home, name: str) -> str:
    """Return in words what a workload asks of the headline models and machines."""
    return answer_text(
        answers_of(CritQuestion(workload=name, basis="physical", cost_model="2n"), home.path, home.database), View()
    )


def main(request: str) -> int:
    """Declare and count a source; print its workload's name or the error as a line of JSON; return the exit code.

    Args:
        request: JSON with `home`, `source`, `name`, `format` and `fields`, as `kappa.profile` writes it.
    """
    from assets.commands.cli import readable  # noqa: PLC0415 - it imports this module's commands

    asked = json.loads(request)
    name = asked["name"] or name_of_source(asked["source"])
    wish = adding.Wish(name, asked["source"], asked["format"], tuple(asked["fields"].items()))
    home = Home(Path(asked["home"]))
    try:
        with Path(os.devnull).open("rb") as nothing:
            profiled(home, adding.understood(home, wish, nothing), [])
    except Exception as error:  # noqa: BLE001 - the caller raises it
        shown = readable(error)
        print(json.dumps({"error": [shown.what, shown.why, shown.remedy, shown.code]}))
        return 1
    print(json.dumps({"name": name}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
