"""What a test asks of an error: its code and the values that it names, not its words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from warehouse.errors import ErrorCode, KappaError


@contextmanager
def refused(
    code: ErrorCode, *values: object, kind: type[KappaError] = KappaError
) -> Iterator[pytest.ExceptionInfo[KappaError]]:
    """Expect an error of this code whose `what` and `why` name each value: a file, a place, a name, a number."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code is code, caught.value
    named = f"{caught.value.what}, {caught.value.why}"
    assert [value for value in values if str(value) not in named] == [], named
