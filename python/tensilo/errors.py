"""What can go wrong: one class for each kind of error, all beneath `TensiloError`."""

__all__ = [
    "AlreadyExistsError",
    "Cancelled",
    "CorruptError",
    "InputOutputError",
    "InsufficientDiskError",
    "InsufficientMemoryError",
    "InvalidArgumentError",
    "LimitError",
    "LockedError",
    "MissingFileError",
    "NotFoundError",
    "OutOfBoundsError",
    "SourceChangedError",
    "TensiloError",
    "UnsupportedError",
]


class TensiloError(Exception):
    """An error of Tensilo.

    Attributes
    ----------
    kind : str
        Who must act: ``"corrupt"``, ``"unsupported"``, ``"not-found"``, and so on.
    file : str or None
        The file in question.
    object : str or None
        The path of the object inside the file.
    offset : int or None
        The byte in the file where the trouble was seen.
    hint : str or None
        What could be done about it.
    """

    kind: str = ""
    file: str | None = None
    object: str | None = None
    offset: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        # KeyError would show the repr of its message, OSError its errno.
        return str(self.args[0]) if self.args else ""


class CorruptError(TensiloError):
    """The file breaks its own format."""


class UnsupportedError(TensiloError):
    """The file is valid, but this version of Tensilo cannot handle it."""


class NotFoundError(TensiloError, KeyError):
    """The named thing does not exist."""


class MissingFileError(NotFoundError, FileNotFoundError):
    """The file does not exist."""


class AlreadyExistsError(TensiloError, FileExistsError):
    """Something is in the way, and nothing is overwritten unasked."""


class LockedError(TensiloError):
    """Another process or handle holds a lock."""


class InvalidArgumentError(TensiloError, ValueError):
    """The request makes no sense."""


class OutOfBoundsError(TensiloError, IndexError):
    """An index lies outside the array, or is none."""


class LimitError(TensiloError):
    """A limit would be passed; the caller may raise it."""


class InsufficientMemoryError(TensiloError, MemoryError):
    """There is too little memory."""


class InsufficientDiskError(TensiloError, OSError):
    """There is too little space on the disk."""


class InputOutputError(TensiloError, OSError):
    """The operating system refused."""


class SourceChangedError(TensiloError):
    """The source changed while it was read."""


class Cancelled(TensiloError):
    """The work was stopped on request."""
