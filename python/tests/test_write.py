"""What `tensilo.write` and `tensilo.File` write is what h5py reads."""

import doctest
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest

import tensilo
import tensilo.writing

BOUNDS = ["earliest", "v18", "v110", "v112", "v114", "v200"]
RECORD = np.dtype(
    {"names": ["a", "b", "c"], "formats": ["<i2", (">f8", (2,)), "S3"], "offsets": [0, 8, 24], "itemsize": 32}
)
RNG = np.random.default_rng(11)

ARRAYS: dict[str, Any] = {
    **{f"n{t[1:]}{'b' if t[0] == '>' else 'l'}": RNG.integers(0, 100, (3, 4)).astype(t)
       for t in ("<u1", "<u2", ">u2", "<u4", "<u8", "<i1", "<i2", "<i4", ">i4", "<i8", "<f2", "<f4", ">f4", "<f8")},
    "bool": np.array([[True, False], [False, True]]),
    "complex": np.array([1 + 2j, 3 - 4j], "c8"),
    "complex128": np.array([1 + 2j, 3 - 4j], ">c16"),
    "fixed": np.array([b"ab", b"c", b""], "S5"),
    "void": np.array([b"\x01\x02\x03"], "V3"),
    "record": np.array([(1, (2.0, 3.0), b"xy"), (4, (5.0, 6.0), b"")], RECORD),
    "scalar": np.float32(2.5),
    "integer": 7,
    "empty": np.zeros((0, 3), "i8"),
    "list": [[1, 2], [3, 4]],
    "strided": np.arange(60).reshape(6, 10)[::2, 1::3],
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_arrays_of_all_types_equal_h5py(tmp_path: Path, bound: str) -> None:
    path = tmp_path / "a.h5"
    tensilo.write(path, {"group": ARRAYS}, bound=bound)
    with h5py.File(path) as f:
        assert sorted(f["group"]) == sorted(ARRAYS)
        for name, value in ARRAYS.items():
            expected, got = np.asarray(value), np.asarray(f["group"][name][()])
            assert got.shape == expected.shape, name
            assert f["group"][name].dtype == expected.dtype, name
            ours = tensilo.read(path, f"group/{name}")
            assert ours.dtype == expected.dtype and ours.shape == expected.shape, name
            # Padding between the fields of a record is not compared.
            assert (got == expected).all() and (ours == expected).all(), name


def test_texts_and_attributes_equal_h5py(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with tensilo.File(path, "w", track_order=True) as f:
        f["text"] = "µm"
        f["texts"] = ["a", "", "long " * 50]
        f["objects"] = np.array([["x", "y"]], dtype=object)
        g = f.create_group("entry/data")
        d = g.create_dataset("counts", data=np.arange(6, dtype="u2").reshape(2, 3))
        values = {"units": "counts", "names": ["x", "y"], "gain": 0.25, "shape": (2, 3), "flag": True, "bytes": b"raw"}
        d.attrs.update(values)
        d.attrs["nothing"] = None
        g.attrs["NX_class"] = "NXdata"
        f.attrs["matrix"] = np.eye(2, dtype=">f4")
        assert dict(d.attrs) == {**values, "nothing": None} and len(d.attrs) == 7
        with pytest.raises(TypeError):
            del d.attrs["units"]
        with pytest.raises(tensilo.AlreadyExistsError):
            d.attrs["units"] = "again"
    with h5py.File(path) as f:
        assert f["text"][()].decode() == "µm"
        assert [t.decode() for t in f["texts"]] == ["a", "", "long " * 50]
        assert f["objects"].asstr()[()].tolist() == [["x", "y"]]
        attrs = f["entry/data/counts"].attrs
        assert list(attrs) == [*values, "nothing"], "in the order in which they were made"
        assert attrs["units"] == "counts" and list(attrs["names"]) == ["x", "y"] and attrs["gain"] == 0.25
        assert attrs["shape"].tolist() == [2, 3] and attrs["flag"] == np.True_ and attrs["bytes"] == b"raw"
        assert isinstance(attrs["nothing"], h5py.Empty)
        assert f["entry/data"].attrs["NX_class"] == "NXdata"
        assert f.attrs["matrix"].tolist() == np.eye(2).tolist() and f.attrs.get_id("matrix").dtype == ">f4"


FILTERS: list[tuple[dict[str, Any], dict[int, Any]]] = [
    ({"compression": "gzip"}, {1: (4,)}),
    ({"compression": "gzip", "compression_opts": 9, "shuffle": True}, {2: (4,), 1: (9,)}),
    ({"compression": 3, "fletcher32": True}, {1: (3,), 3: ()}),
    ({"compression": "zstd"}, {32015: (3,)}),
    ({"compression": "zstd", "compression_opts": 19, "shuffle": True}, {2: (4,), 32015: (19,)}),
    ({"compression": "lz4"}, {32004: (0,)}),
    ({"compression": "lzf"}, {32000: (4, 261, 24 * 8 * 4)}),
    ({"compression": "szip"}, {4: None}),
    ({"compression": "szip", "compression_opts": ("ec", 16)}, {4: None}),
    ({"compression": "bitshuffle"}, {32008: None}),
    ({"scaleoffset": 0}, {6: None}),
    ({"scaleoffset": True, "compression": "gzip", "shuffle": True}, {6: None, 2: (4,), 1: (4,)}),
    (dict(hdf5plugin.Zstd(5)), {32015: (5,)}),
    (dict(hdf5plugin.Blosc(cname="lz4")), {32001: None}),
    ({"fletcher32": True}, {3: ()}),
]


@pytest.mark.parametrize(("options", "expected"), FILTERS, ids=lambda o: str(o)[:40])
def test_filters_are_those_that_h5py_names(tmp_path: Path, options: dict[str, Any], expected: dict[int, Any]) -> None:
    array = (np.arange(100 * 20, dtype="i4") % 250).reshape(100, 20) - 30
    path, other = tmp_path / "a.h5", tmp_path / "b.h5"
    with tensilo.File(path, "x") as f:
        f.create_dataset("d", data=array, chunks=(24, 8), fillvalue=-1, **options)
    with h5py.File(path) as f:
        plist = f["d"].id.get_create_plist()
        found = [plist.get_filter(i) for i in range(plist.get_nfilters())]
        assert [x[0] for x in found] == list(expected)
        for (code, _, values, _), wanted in zip(found, expected.values(), strict=True):
            assert wanted is None or tuple(values) == wanted, code
        assert f["d"].chunks == (24, 8) and f["d"].fillvalue == -1
        np.testing.assert_array_equal(f["d"][()], array)
    np.testing.assert_array_equal(tensilo.read(path, "d"), array)
    names = {"gzip", "lzf", "szip", None}
    if options.get("compression") in names or isinstance(options.get("compression"), int):
        with h5py.File(other, "w") as f:
            ours = found
            f.create_dataset("d", data=array, chunks=(24, 8), fillvalue=-1, **options)
            plist = f["d"].id.get_create_plist()
            theirs = [plist.get_filter(i) for i in range(plist.get_nfilters())]
            # The values that follow from datatype, chunk and fill value are those of libhdf5.
            assert [(x[0], tuple(x[2])) for x in ours] == [(x[0], tuple(x[2])) for x in theirs]


def test_scaleoffset_of_floats_keeps_the_digits(tmp_path: Path) -> None:
    array = RNG.normal(size=(50, 7)).astype("f4")
    path = tmp_path / "a.h5"
    with tensilo.File(path) as f:
        f.create_dataset("d", data=array, scaleoffset=3)
        with pytest.raises(ValueError, match="digits"):
            f.create_dataset("e", data=array, scaleoffset=True)
    with h5py.File(path) as f:
        assert np.abs(f["d"][()] - array).max() <= 0.5e-3 + 1e-6


def test_datasets_without_data_read_as_the_fill_value_and_grow(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with tensilo.File(path) as f:
        f.create_dataset("plain", (3, 4), "f4", fillvalue=2.5)
        f.create_dataset("chunked", shape=(0, 512), dtype="u2", maxshape=(None, 512), compression="gzip")
        f.create_dataset("reshaped", (2, 3), data=range(6), dtype="i8", maxshape=(None, 3), chunks=True)
        f.create_dataset("big", shape=(1000, 1000), dtype="f8", chunks=True)
    with h5py.File(path, "a") as f:
        assert f["plain"][()].tolist() == [[2.5] * 4] * 3 and f["plain"].chunks is None
        assert f["chunked"].maxshape == (None, 512) and f["chunked"].chunks is not None
        assert f["reshaped"][()].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert np.prod(f["big"].chunks) * 8 <= 1 << 20
        f["chunked"].resize(9, 0)
        f["chunked"][...] = 5
        assert f["chunked"][()].sum() == 5 * 9 * 512


def test_links_are_hard_soft_and_external(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with tensilo.File(path) as f:
        run = f.create_group("run")
        counts = run.create_dataset("counts", data=np.arange(3))
        f["again"] = counts
        run["latest"] = tensilo.SoftLink("/run/counts")
        f["elsewhere"] = tensilo.ExternalLink("other.h5", "/x")
        assert repr(run) and repr(counts)
    with h5py.File(path) as f:
        assert f["again"] == f["run/counts"]
        assert f["run"].get("latest", getlink=True).path == "/run/counts"
        link = f.get("elsewhere", getlink=True)
        assert (link.filename, link.path) == ("other.h5", "/x")


KEYWORDS: list[dict[str, Any]] = [
    {"data": np.arange(6), "maxshape": 9},
    {"data": np.arange(6), "maxshape": 9, "chunks": 4},
    {"data": np.arange(6), "maxshape": (None,), "chunks": (np.int64(4),)},
    {"shape": 6, "dtype": "i4", "fillvalue": 7},
    {"shape": (2, 3), "dtype": "f4", "fillvalue": 1.5, "fill_time": "alloc"},
    {"shape": (2, 3), "dtype": "f4", "fillvalue": 1.5, "fill_time": "ifset", "chunks": (1, 2)},
    {"data": np.arange(6), "fill_time": "never", "chunks": (2,)},
    {"shape": (3,), "dtype": h5py.string_dtype()},
    {"data": h5py.Empty("f8")},
    {"data": np.array([2, 0, 1], h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, "u1"))},
    {"shape": (2,), "dtype": h5py.enum_dtype({"NO": -300, "YES": 7}, ">i2"), "fillvalue": -300},
    {"data": np.zeros((0, 2), np.dtype([("e", h5py.enum_dtype({"A": 1}, "<i4"), (2,)), ("x", "<f4")]))},
    {"data": np.arange(3), "track_times": False},
    {"data": h5py.Empty("i4"), "track_order": True},
]


@pytest.mark.parametrize("keywords", KEYWORDS, ids=[str(sorted(k)) + str(i) for i, k in enumerate(KEYWORDS)])
def test_keywords_make_the_dataset_that_h5py_makes(tmp_path: Path, keywords: dict[str, Any]) -> None:
    with tensilo.File(tmp_path / "a.h5") as ours, h5py.File(tmp_path / "b.h5", "w") as theirs:
        ours.create_dataset("d", **keywords)
        theirs.create_dataset("d", **keywords)
    with h5py.File(tmp_path / "a.h5") as a, h5py.File(tmp_path / "b.h5") as b:
        x, y = a["d"], b["d"]
        assert (x.shape, x.dtype, x.maxshape) == (y.shape, y.dtype, y.maxshape)
        if "chunks" in keywords:
            assert x.chunks == y.chunks
        if x.dtype.names is None:
            assert h5py.check_enum_dtype(x.dtype) == h5py.check_enum_dtype(y.dtype)
        else:
            kinds = [[h5py.check_enum_dtype(z.dtype[n].base) for n in z.dtype.names] for z in (x, y)]
            assert kinds[0] == kinds[1] and any(kinds[0])
        p, q = x.id.get_create_plist(), y.id.get_create_plist()
        if x.dtype.kind != "O":
            assert p.get_fill_time() == q.get_fill_time() and x.fillvalue == y.fillvalue
        assert x.shape is None or (x[()] == y[()]).all()


@pytest.mark.parametrize("order", [None, False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_each_object_keeps_the_order_it_is_asked_to(tmp_path: Path, whole: bool, order: bool | None) -> None:
    with tensilo.File(tmp_path / "a.h5", "w", track_order=whole) as f:
        group = f.create_group("g", track_order=order)
        made: list[tensilo.writing.GroupWriter | tensilo.writing.DatasetWriter] = [
            group,
            group.create_dataset("z", data=[1], track_order=order),
            group.create_dataset("t", data=["x"], track_order=order),
            group.create_dataset("n", data=h5py.Empty("f4"), track_order=order),
        ]
        for x in made:
            x.attrs.update({"z": 1, "a": 2})
    expected = whole if order is None else order
    with h5py.File(tmp_path / "a.h5") as f:
        assert bool(f["g"].id.get_create_plist().get_link_creation_order()) == expected
        assert list(f["g"]) == (["z", "t", "n"] if expected else ["n", "t", "z"])
        for path in ("g", "g/z", "g/t", "g/n"):
            assert bool(f[path].id.get_create_plist().get_attr_creation_order()) == expected, path
            assert list(f[path].attrs) == (["z", "a"] if expected else ["a", "z"]), path


def test_attributes_keep_the_names_of_an_enumeration(tmp_path: Path) -> None:
    kind = h5py.enum_dtype({"OFF": 0, "ON": 1}, "<i4")
    with tensilo.File(tmp_path / "a.h5", "w") as f:
        f.attrs["state"] = np.array([1, 0], kind)
    with h5py.File(tmp_path / "a.h5") as f:
        found = f.attrs.get_id("state").dtype
        assert h5py.check_enum_dtype(found) == {"OFF": 0, "ON": 1} and f.attrs["state"].tolist() == [1, 0]


def test_elements_in_external_files_are_read_from_there(tmp_path: Path) -> None:
    data = np.arange(24, dtype="<i4").reshape(4, 6)
    first, second = tmp_path / "first.raw", tmp_path / "second.raw"
    first.write_bytes(b"head" + data.tobytes()[:40])
    second.write_bytes(data.tobytes()[40:])
    whole = tmp_path / "whole.raw"
    data.tofile(whole)
    before = {p: p.read_bytes() for p in (first, second, whole)}
    with tensilo.File(tmp_path / "a.h5", "w") as f:
        two: list[tuple[Path | str, int, int | None]] = [(first, 4, 40), (str(second), 0, h5py.h5f.UNLIMITED)]
        f.create_dataset("two", (4, 6), "<i4", external=two)
        f.create_dataset("one", (4, 6), "<i4", external=whole)
        for bad in ([(first, 4, 40)], [(first, 4, None), (second, 0, 56)], []):
            with pytest.raises((tensilo.InvalidArgumentError, ValueError)):
                f.create_dataset("bad", (4, 6), "<i4", external=bad)
        with pytest.raises(ValueError, match="no data"):
            f.create_dataset("bad", data=data, external=whole)
        with pytest.raises(tensilo.InvalidArgumentError, match="contiguous"):
            f.create_dataset("bad", (4, 6), "<i4", chunks=(2, 2), external=whole)
        with pytest.raises(ValueError, match="track_times"):
            f.create_dataset("bad", data=data, track_times=True)
    assert {p: p.read_bytes() for p in before} == before
    with h5py.File(tmp_path / "a.h5") as f:
        assert sorted(f) == ["one", "two"]
        assert f["two"].external[0][1:] == (4, 40) and len(f["two"].external) == 2
        assert (f["two"][()] == data).all() and (f["one"][()] == data).all()


@pytest.mark.parametrize("item", ["u1", "<f8", [("a", "<i2"), ("b", "<f4")]])
def test_sequences_of_variable_length_equal_h5py(tmp_path: Path, item: Any) -> None:
    rows = [np.zeros(0, item), np.ones(3, item), np.ones(70_000, item)]
    data = np.empty((3, 1), h5py.vlen_dtype(np.dtype(item)))
    data[:, 0] = rows
    tensilo.write(tmp_path / "a.h5", {"g": {"d": data}})
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["g/d"].dtype == data.dtype and h5py.check_vlen_dtype(f["g/d"].dtype) == np.dtype(item)
        for got, want in zip(f["g/d"][:, 0], rows, strict=True):
            assert (got == want).all() and got.shape == want.shape


def test_no_filter_is_left_out_in_silence(tmp_path: Path) -> None:
    data = np.zeros((100, 100), "f4")
    with h5py.File(tmp_path / "b.h5", "w") as f, pytest.raises(ValueError):
        f.create_dataset("d", data=data, compression=999)
    for keywords in ({"compression": 999}, dict(hdf5plugin.SZ3(absolute=0.1)), dict(hdf5plugin.Zfp())):
        with tensilo.File(tmp_path / "a.h5", "w") as f:
            with pytest.raises((tensilo.UnsupportedError, tensilo.InvalidArgumentError), match=str(keywords["compression"])):
                f.create_dataset("d", data=data, **keywords)
            f.create_dataset("d", data=data, allow_unknown_filter=True, **keywords)
        with h5py.File(tmp_path / "a.h5") as f:
            assert f["d"].id.get_chunk_info(0).filter_mask == 1 and not f["d"][()].any()


def test_contradictions_are_refused_and_leave_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    cases: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"data": np.arange(3), "compression": "brotli"}, ValueError),
        ({"data": np.arange(3), "compression": "gzip", "compression_opts": 12}, ValueError),
        ({"data": np.arange(3), "compression_opts": 3}, ValueError),
        ({"data": np.arange(3), "maxshape": (None, None)}, ValueError),
        ({"data": np.float32(1), "compression": "gzip"}, TypeError),
        ({"shape": (3,)}, TypeError),
        ({"data": np.array([1, "x"], dtype=object)}, TypeError),
        ({"data": np.array(["2020-01-01"], "M8[D]")}, tensilo.UnsupportedError),
        ({"data": np.arange(3), "chunks": (2, 2)}, tensilo.InvalidArgumentError),
        ({"data": np.arange(3), "chunks": False, "compression": "gzip"}, tensilo.InvalidArgumentError),
        ({"data": np.arange(3), "chunks": -1}, ValueError),
        ({"data": np.arange(3), "chunks": 1.5}, TypeError),
        ({"data": np.arange(3), "compression": True}, ValueError),
        ({"data": np.arange(3), "fill_time": "later"}, ValueError),
        ({"shape": (2, -3), "dtype": "f4"}, ValueError),
        ({"data": np.arange(3), "maxshape": True}, ValueError),
        ({"shape": (3,), "dtype": h5py.vlen_dtype("f4")}, tensilo.UnsupportedError),
        ({"data": "a\0b"}, tensilo.InvalidArgumentError),
        ({"data": np.zeros(2, {"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2]})}, tensilo.UnsupportedError),
        ({"data": np.zeros(2, [("a", "O")])}, TypeError),
    ]
    for options, error in cases:
        with pytest.raises(error), tensilo.File(path) as f:
            f.create_dataset("d", **options)
        assert os.listdir(tmp_path) == [], options
    with pytest.raises(ValueError, match="mode"):
        tensilo.File(path, "r")
    tensilo.write(path, {"x": 1})
    before = path.read_bytes()
    with pytest.raises(tensilo.AlreadyExistsError):
        tensilo.write(path, {"x": 2})
    with pytest.raises(RuntimeError), tensilo.File(path, "w") as f:
        f["x"] = 3
        raise RuntimeError
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.h5"]
    with tensilo.File(path, "w") as f:
        f["x"] = 4
    assert tensilo.read(path, "x") == 4
    f.close()
    with pytest.raises(ValueError, match="closed"):
        f["y"] = 5


def test_the_bytes_do_not_depend_on_threads_and_the_user_block_is_kept(tmp_path: Path) -> None:
    array = RNG.integers(0, 9, (300, 300), "u2")
    files = []
    for threads in (1, 3, 0):
        path = tmp_path / f"{threads}.h5"
        with tensilo.File(path, threads=threads, userblock_size=512) as f:
            f.create_dataset("d", data=array, chunks=(17, 40), compression="gzip", shuffle=True)
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2] and files[0][:512] == bytes(512)
    with h5py.File(tmp_path / "0.h5") as f:
        assert f.userblock_size == 512


def test_attributes_by_path_and_options_for_all(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    tensilo.write(
        path,
        {"x": np.zeros((64, 64)), "g": {"y": np.ones(8), "name": "n"}, "l": tensilo.SoftLink("/x")},
        attributes={"/": {"title": "t"}, "g/y": {"units": "mm"}},
        compression="zstd",
        shuffle=True,
    )
    with h5py.File(path) as f:
        assert f.attrs["title"] == "t" and f["g/y"].attrs["units"] == "mm"
        assert all(f[n].id.get_create_plist().get_nfilters() == 2 for n in ("x", "g/y"))
        assert f["l"][()].sum() == 0 and f["g/name"][()] == b"n"


def test_arrays_are_lent_and_other_threads_run(tmp_path: Path) -> None:
    """The interpreter is free during a write, and memory maps are read where they lie."""
    array = np.memmap(tmp_path / "a.raw", dtype="u4", mode="w+", shape=(2000, 1000))
    array[:] = np.arange(array.size, dtype="u4").reshape(array.shape)
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    with tensilo.File(tmp_path / "a.h5") as f:
        thread.start()
        before = counted[0]
        f.create_dataset("d", data=array, chunks=(10, 1000), compression="gzip", compression_opts=9)
        during = counted[0] - before
        stop.set()
    thread.join()
    assert during > 100
    np.testing.assert_array_equal(tensilo.read(tmp_path / "a.h5", "d"), array)


def test_the_examples_in_the_docstrings_hold() -> None:
    result = doctest.testmod(tensilo.writing)
    assert result.attempted >= 6 and result.failed == 0


HELD = """
import resource, sys
import numpy as np
import tensilo

array = np.ones((64, 512, 1024), dtype="f4")
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tensilo.write(sys.argv[1], {"small": array[0, 0]})
before = most()
tensilo.write(sys.argv[1], {"d": array}, overwrite=True, **eval(sys.argv[2]))
print(most() - before)
"""


@pytest.mark.parametrize("keywords", [{}, {"chunks": (1, 512, 1024)}, {"chunks": (1, 512, 1024), "compression": "lz4"}])
def test_arrays_are_written_from_numpys_memory_without_a_clone(tmp_path, keywords):
    """An array of 128 MiB: what is held beyond it is the window of 32 MiB at most, and the encoders' scratch memory."""
    path = tmp_path / "a.h5"
    out = subprocess.run(
        [sys.executable, "-c", HELD, str(path), repr(keywords)], capture_output=True, text=True, check=True
    )
    assert int(out.stdout) < 64 * 1024, f"{out.stdout} KiB more"
    with h5py.File(path) as f:
        assert (f["d"][()] == 1).all()


@pytest.mark.parametrize("bound", ["earliest", "v18", "v200"])
def test_file_space_and_shared_messages_are_what_h5py_sees(tmp_path: Path, bound: str) -> None:
    path = tmp_path / "a.h5"
    with tensilo.File(
        path,
        "w",
        bound=bound,
        fs_strategy="page",
        fs_persist=True,
        fs_threshold=5,
        fs_page_size=1024,
        shared_messages={"attribute": 20, "datatype": 1, "dataspace": 1},
    ) as f:
        for i in range(30):
            f.create_dataset(f"d{i}", data=np.arange(i % 3 + 1)).attrs["units"] = "as all others have"
    with h5py.File(path, page_buf_size=16384) as f:
        plist = f.id.get_create_plist()
        assert plist.get_file_space_strategy() == (h5py.h5f.FSPACE_STRATEGY_PAGE, True, 5)
        assert plist.get_file_space_page_size() == 1024 and path.stat().st_size % 1024 == 0
        assert all(f[f"d{i}"].attrs["units"] == "as all others have" for i in range(30))
        assert all(f[f"d{i}"].size == i % 3 + 1 for i in range(30))
    for wrong in ({"fs_strategy": "pages"}, {"fs_page_size": 100}, {"shared_messages": {"links": 1}}):
        with pytest.raises(ValueError):
            tensilo.File(tmp_path / "b.h5", "w", **wrong)  # type: ignore[arg-type]
