"""Which format a pack gets: asked for, or chosen with the reason."""

from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest

import tensilo
from tensilo import pack

FAMILY = Path(__file__).resolve().parents[2] / "examples/family/demo_master.h5"


def frames(path: Path, counts: np.ndarray) -> Path:
    with h5py.File(path, "w") as f:
        f.create_dataset(
            "entry/data/data", data=counts, chunks=(1, *counts.shape[1:]), compression=hdf5plugin.Bitshuffle()
        )
    return path


def test_format_1_is_chosen_where_it_takes_the_source(tmp_path: Path) -> None:
    found = pack.inspect(FAMILY, index_dir=tmp_path, format="auto")
    assert found.format == 1 and "other programs read it" in found.why
    plan = pack.plan(found, tmp_path / "scan.h5")
    assert plan.format == 1
    made = pack.produce(plan)
    assert (made.format, made.why) == (1, found.why)
    assert isinstance(pack.open(tmp_path / "scan.h5"), pack.Pack)


def test_what_inspection_for_format_1_refuses_becomes_format_2(tmp_path: Path) -> None:
    counts = np.arange(7 * 6 * 5, dtype="i4").reshape(7, 6, 5) - 3
    np.save(tmp_path / "a.npy", counts)
    frames(tmp_path / "b.h5", counts)
    for source in ("a.npy", "b.h5"):
        found = pack.inspect(tmp_path / source, index_dir=tmp_path, format="auto")
        assert found.format == 2 and found.why.startswith("format 1 refuses: "), found.why
        made = pack.produce(pack.plan(found, tmp_path / f"{source}.pack"))
        assert (made.format, made.why) == (2, found.why)
        assert np.array_equal(pack.open(tmp_path / f"{source}.pack")[...].reshape(counts.shape), counts)
    with pytest.raises(tensilo.TensiloError) as caught:
        pack.inspect(tmp_path / "b.h5", index_dir=tmp_path)
    assert caught.value.hint == "format=2"


def test_what_producing_format_1_refuses_becomes_format_2(tmp_path: Path) -> None:
    counts = np.random.default_rng(1).poisson(1, (64, 64, 64)).astype("u2")
    # More than format 1 keeps in 8 bits, which only the counts themselves show.
    counts[33, 5, 6] = 3000
    frames(tmp_path / "hot.h5", counts)
    found = pack.inspect(tmp_path / "hot.h5", index_dir=tmp_path, format="auto")
    plan = pack.plan(found, tmp_path / "scan.h5")
    assert (found.format, plan.format) == (1, 1)
    made = pack.produce(plan)
    assert made.format == 2 and "3000" in made.why
    assert np.array_equal(pack.open(tmp_path / "scan.h5")[...].reshape(counts.shape), counts)
    with pytest.raises(tensilo.UnsupportedError) as caught:
        pack.produce(pack.plan(pack.inspect(tmp_path / "hot.h5", index_dir=tmp_path), tmp_path / "one.h5"))
    assert caught.value.hint == "format=2"


def test_a_format_can_be_asked_for_in_each_step(tmp_path: Path) -> None:
    for format in (2, "2"):
        found = pack.inspect(FAMILY, format=format)
        assert found.format == 2 and found.why == "it was asked for"
    assert pack.inspect(FAMILY, format="1", index_dir=tmp_path).format == 1
    one = pack.plan(pack.inspect(FAMILY, index_dir=tmp_path), tmp_path / "scan.h5", format="2")
    assert one.format == 2 and one.why == "it was asked for"
    back = pack.plan(found, tmp_path / "scan.h5", format="auto")
    assert back.format == 1 and "other programs" in back.why
    by_hand = pack.inspect(FAMILY, format="auto", scan_shape=(512,), index_dir=tmp_path)
    assert by_hand.format == 2 and "by hand" in by_hand.why
    for wrong in (3, "3", "best", True, None):
        with pytest.raises(tensilo.InvalidArgumentError):
            pack.inspect(FAMILY, format=wrong)


def test_what_neither_format_takes_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "floats.npy", np.zeros((3, 4, 4)))
    (tmp_path / "text.h5").write_text("no HDF5")
    for source, error in (
        ("floats.npy", tensilo.TensiloError),
        ("text.h5", tensilo.CorruptError),
        ("nothing.h5", FileNotFoundError),
    ):
        with pytest.raises(error):
            pack.inspect(tmp_path / source, index_dir=tmp_path, format="auto")
