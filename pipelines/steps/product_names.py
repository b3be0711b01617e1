"""Names of the products that the steps leave in staging; an asset's key is its product's name."""

from __future__ import annotations

from pathlib import Path

from warehouse.home.staging import Staging


def home_of(staging: Staging) -> Path:
    """Return the home folder that products are in; the user's own rows and workloads are there too."""
    return staging.root.parents[1]


def raw_name(workload: str) -> str:
    """Return the name of a workload's fetched files."""
    return f"raw/{workload}"


def conversations_name(workload: str) -> str:
    """Return the name of a workload's sessions of messages."""
    return f"conversations/{workload}"


def tokenizer_name(tokenizer: str) -> str:
    """Return the name of a tokenizer's verified file."""
    return f"tokenizer_files/{tokenizer}"


def counts_name(workload: str, tokenizer: str) -> str:
    """Return the name of the tokens of every message."""
    return f"token_counts/{workload}/{tokenizer}"


def turns_name(workload: str, tokenizer: str, counting: str, reuse: str) -> str:
    """Return the name of K, T and kappa_ratio of every turn, counted one way, K of one kind of reuse."""
    return f"turns/{workload}/{tokenizer}/{counting}/{reuse}"


def reuse_distances_name(workload: str, tokenizer: str, counting: str, reuse: str) -> str:
    """Return the name of what a cache of any size gives the turns of a series."""
    return f"reuse_distances/{workload}/{tokenizer}/{counting}/{reuse}"


def table_name(table: str) -> str:
    """Return the name of a table over all workloads."""
    return f"tables/{table}"


def distrusted_name(tokenizer: str) -> str:
    """Return the name of the note that the fast engine is not to be used for a tokenizer."""
    return f"distrusted/{tokenizer}"
