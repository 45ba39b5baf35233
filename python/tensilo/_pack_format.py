"""Which format a pack has: asked for, or chosen, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from .errors import InvalidArgumentError, TensiloError

if TYPE_CHECKING:
    from .pack import Inspection

#: A format, or the choice between both.
Format: TypeAlias = Literal[1, 2] | Literal["1", "2", "auto"]

ASKED = "it was asked for"
TAKES = "format 1 takes the source, and other programs read it"


@dataclasses.dataclass(frozen=True)
class Origin:
    """How a source was inspected, and how it can be inspected for another format."""

    look: Callable[[int, str, bool], Inspection]
    why: str
    #: Does format 2 take over where format 1 refuses?
    auto: bool


def wanted_format(format: Format) -> Literal[1, 2, "auto"]:
    """The format that was asked for."""
    found = {1: 1, 2: 2, "1": 1, "2": 2, "auto": "auto"}.get(format)
    if found is None or isinstance(format, bool):
        raise InvalidArgumentError(f"format {format!r}; there are 1, 2 and 'auto'")
    return found  # type: ignore[return-value]


def refusal(e: TensiloError) -> str:
    """Why format 2 takes over; the error itself where it does not."""
    if e.hint != "format=2":
        raise e
    return f"format 1 refuses: {e}"
