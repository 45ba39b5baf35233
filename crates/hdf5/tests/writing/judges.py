"""Compares files with their copies: `judges.py MODE H5DIGEST`, lines `bound TAB source TAB copy` on stdin.

Modes: `2.0` compares the lines of h5digest.py in h5py's libhdf5, `2.2` the same in netCDF4's, `1.10` runs h5diff. Each
pair that is not as it should be is printed; the last line counts outcomes, `outcome=N` each.
"""
import collections
import contextlib
import functools
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import types

MODE, SCRIPT = sys.argv[1], sys.argv[2]
COUNTS = collections.Counter()


def load():
    """h5digest.py, bound to the libhdf5 of the mode."""
    if MODE == "2.2":
        # It takes the libhdf5 that it finds in the process: here that of netCDF4, with the plugins as files.
        import netCDF4  # noqa: F401

        sys.modules["h5py"] = types.ModuleType("h5py")
        sys.modules["hdf5plugin"] = None
    spec = importlib.util.spec_from_file_location("h5digest", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Text(io.StringIO):
    def reconfigure(self, **_):
        pass


@functools.lru_cache(maxsize=2)
def digest(path):
    out = Text()
    with contextlib.redirect_stdout(out):
        H5DIGEST.main(["h5digest.py", "--refs=path", path])
    lines = []
    for line in out.getvalue().splitlines():
        fact = json.loads(line)
        fact.pop("detail", None)
        for a in fact.get("attrs", []):
            a.pop("detail", None)
        lines.append(fact)
    return lines


def by_digest(bound, source, copy):
    x, y = digest(source), digest(copy)
    if y and y[-1]["kind"] == "end" and x == y:
        COUNTS["same"] += 1
        return
    if x[-1]["kind"] != "end" and y[-1]["kind"] == "end":
        # The source does not open in this libhdf5, the copy does.
        COUNTS["only the copy opens"] += 1
        return
    COUNTS["differ"] += 1
    print("differs:", bound, source, copy)
    for p, q in zip(x, y):
        if p != q:
            print("   source", json.dumps(p)[:600])
            print("   copy  ", json.dumps(q)[:600])
            return
    print("   lines", len(x), len(y))


def ran(*command):
    try:
        done = subprocess.run(command, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return 124, b"timeout"
    return done.returncode, (done.stdout + done.stderr).strip()


@functools.lru_cache(maxsize=2)
def with_itself(source, folder):
    """What h5diff says of a file and the same bytes: neither errors nor "not comparable" are then the copy's fault."""
    same = os.path.join(folder, "the-same-bytes")
    shutil.copyfile(source, same)
    code, said = ran("h5diff", source, same)
    os.unlink(same)
    return code, said.replace(same.encode(), b"COPY")


def by_h5diff(bound, source, copy):
    code, said = ran("h5diff", source, copy)
    if code == 0 and not said:
        COUNTS["clean"] += 1
        return
    itself = with_itself(source, os.path.dirname(copy))
    if (code, said.replace(copy.encode(), b"COPY")) == itself:
        # Types that h5diff cannot compare, or a source that 1.10 cannot read: the copy must open all the same.
        opens = ran("h5dump", "-H", copy)[0] == 0 or ran("h5dump", "-H", source)[0] != 0
        if code == 0 and opens:
            COUNTS["equal as far as h5diff compares"] += 1
            return
        if bound not in ("earliest", "v18", "v110") or opens:
            COUNTS["1.10 does not read the source"] += 1
            return
    if itself[0] != 0 and ran("h5dump", copy)[0] == 0:
        COUNTS["1.10 reads the copy, not the source"] += 1
        return
    if bound not in ("earliest", "v18", "v110") and code not in (0, 1):
        # Refused, or, where datatypes have the versions of 1.12 and 2.0, a crash of h5diff.
        COUNTS["newer than 1.10"] += 1
        return
    COUNTS["differ"] += 1
    print("h5diff:", bound, code, source, copy)
    for line in said.decode("utf-8", "replace").splitlines()[:6]:
        print("   ", line[:200])


os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
if MODE != "2.0":
    spec = importlib.util.find_spec("hdf5plugin")
    os.environ["HDF5_PLUGIN_PATH"] = os.path.join(spec.submodule_search_locations[0], "plugins")
JUDGE = by_h5diff
if MODE != "1.10":
    H5DIGEST = load()
    JUDGE = by_digest
for line in sys.stdin.read().splitlines():
    JUDGE(*line.split("\t"))
print(", ".join(f"{outcome}={n}" for outcome, n in sorted(COUNTS.items())))
