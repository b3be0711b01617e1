"""What is to be exported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExportQuestion:
    """What is to be exported.

    Attributes:
        workload: Its name.
        form: `mooncake` or `bailian`.
        block_tokens: Tokens of a block; None for those in which the workload's K is counted, by `history` for the
            form's usual ones.
        tokenizer: Whose counts; None for the first that the workload has, as for `counting`.
        counting: text, chat or logged.
        reuse: history or prefix; None for prefix where the blocks of requests are known, else history.
        salt: Text from which the first ordinal is made, so that traces can be put together; None for 0.
    """

    workload: str
    form: str = "mooncake"
    block_tokens: int | None = None
    tokenizer: str | None = None
    counting: str | None = None
    reuse: str | None = None
    salt: str | None = None
