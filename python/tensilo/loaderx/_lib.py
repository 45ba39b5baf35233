"""Where the functions for C are: ``libzrecord`` and ``libsampler`` in one file, the extension module."""

from .. import _native

__all__ = ["path"]


def path(stem: str) -> str:
    """The absolute path of a library, for ``ffi.dlopen``.

    Parameters
    ----------
    stem : str
        ``"zrecord"`` or ``"sampler"``.

    Returns
    -------
    str
        The path.

    Raises
    ------
    ImportError
        There is no such library.
    """
    found = _native.__file__
    if stem not in ("sampler", "zrecord") or found is None:
        raise ImportError(f"there is no library {stem!r}, only 'sampler' and 'zrecord'")
    return found
