"""make_digests.py FOLDER DIGEST: digests of FOLDER/*.h5 by the rules of DIGEST (a path of h5digest.py).

NAME.2_2.jsonl is made by the libhdf5 inside netCDF4 (2.2), NAME.2_0.jsonl by the one inside h5py (2.0). One process has
one libhdf5, so the second is made by a child.
"""
import contextlib
import glob
import importlib.util
import io
import os
import subprocess
import sys
import types

folder, digest_path = sys.argv[1:3]
version = sys.argv[3] if len(sys.argv) > 3 else "2_2"
if version == "2_2":
    sys.modules["h5py"] = types.ModuleType("h5py")
    sys.modules["hdf5plugin"] = None
    import netCDF4  # noqa: F401  (brings its libhdf5 into the process)
spec = importlib.util.spec_from_file_location("h5digest", digest_path)
digest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(digest)


class Lines(io.StringIO):
    def reconfigure(self, **_):
        pass


for path in sorted(glob.glob(os.path.join(folder, "*.h5"))):
    out = Lines()
    digest.PATHS = None
    with contextlib.redirect_stdout(out):
        digest.main(["", "--storage", "--refs=path", path])
    with open("%s.%s.jsonl" % (path[:-3], version), "w") as f:
        f.write(out.getvalue())
if version == "2_2":
    subprocess.run([sys.executable, __file__, folder, digest_path, "2_0"], check=True)
sys.stdout.flush()
os._exit(0)
