"""loaderx's loader and sampler under their own names, and the absence of the defects that loaderx 0.5.0 has there."""

import gc
import threading
import time
from itertools import islice

import numpy as np
import pytest

from tensilo.loaderx import DataLoader, Dataset, Sampler

DATA = np.arange(400 * 4, dtype="<f4").reshape(400, 4)
LABELS = np.arange(400)


def ends(work, seconds=60):
    """Does it come back? In a thread, so that a hang is a failure."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def test_it_is_endless_yields_pairs_and_has_no_length():
    with DataLoader(DATA, LABELS, batch_size=32) as loader:
        assert iter(loader) is loader
        expected = Sampler(400, 32, Sampler.Mode.IID)
        for batch in islice(loader, 50):
            assert list(batch) == ["data", "label"]
            assert np.array_equal(batch["label"], expected.next())
            assert np.array_equal(batch["data"], DATA[batch["label"]])
        with pytest.raises(TypeError, match="Eternal"):
            len(loader)
    with pytest.raises(ValueError):
        DataLoader(DATA, LABELS[1:])


def test_the_transform_gets_and_returns_the_pair():
    with DataLoader(DATA, LABELS, 2, 16, 2, 0, transform=lambda pair: (pair[0] + 1, -pair[1])) as loader:
        batch = next(loader)
    assert np.array_equal(batch["data"], DATA[:16] + 1) and batch["label"].tolist() == [-i for i in range(16)]


def test_the_sampler_has_loaderx_modes_and_streams():
    assert (Sampler.Mode.SEQUENTIAL, Sampler.Mode.IID) == (0, 1)
    assert [b.tolist() for b in islice(Sampler(10, 4, 0), 3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


def test_close_returns_for_every_number_of_workers_and_prefetch():
    for workers, prefetch in [(8, 1), (8, 4), (16, 2), (4, 1), (2, 1), (4, 4)]:
        for transform in (None, lambda pair: pair):
            more = {} if transform is None else {"transform": transform}
            loader = DataLoader(DATA, LABELS, workers, 16, prefetch, **more)
            next(loader)
            assert ends(loader.close), (workers, prefetch)


def test_a_loader_that_is_forgotten_ends_from_whichever_thread():
    raised = []
    before = threading.excepthook
    threading.excepthook = raised.append
    try:
        loader = DataLoader(DATA, LABELS, 3, 16, transform=lambda pair: pair)
        next(loader)
        box = [loader]
        del loader
        assert ends(box.clear)
        gc.collect()
    finally:
        threading.excepthook = before
    assert raised == []


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_constructor_that_fails_leaves_nothing_to_clean_up():
    with pytest.raises(ValueError):
        DataLoader(DATA, LABELS[1:])
    gc.collect()


def test_a_transform_that_raises_reaches_the_consumer():
    def fails(pair):
        raise ZeroDivisionError("in the transform")

    with DataLoader(DATA, LABELS, transform=fails) as loader:
        for _ in range(10):
            with pytest.raises(ZeroDivisionError, match="in the transform"):
                next(loader)


def test_an_empty_dataset_is_refused():
    with pytest.raises(ValueError, match="no records"):
        DataLoader(DATA[:0], LABELS[:0])


def test_batches_are_in_order():
    def uneven(pair):
        time.sleep(0.0005 * (int(pair[1][0]) // 16 % 3))
        return pair

    with DataLoader(DATA, LABELS, 4, 16, mode=0, transform=uneven) as loader:
        first = [int(batch["label"][0]) for batch in islice(loader, 100)]
    assert first == [16 * i % 400 for i in range(100)]


def test_the_position_can_be_kept():
    with DataLoader(DATA, LABELS, 4, 16) as loader:
        list(islice(loader, 7))
        state = loader.state_dict()
        expected = [batch["label"].tolist() for batch in islice(loader, 5)]
    with DataLoader(DATA, LABELS, 2, 16) as loader:
        loader.load_state_dict(state)
        assert [batch["label"].tolist() for batch in islice(loader, 5)] == expected


def test_a_sampler_over_nothing_or_of_an_unknown_mode_is_refused():
    for mode in (0, 1):
        with pytest.raises(ValueError):
            Sampler(0, 4, mode)
    with pytest.raises(ValueError):
        Sampler(4, 4, 77)
    with pytest.raises(ValueError):
        Sampler(4, 0, 0)


@pytest.mark.parametrize("codec", ["raw", "flate"])
def test_datasets_are_read_natively_and_may_be_changed_after_close(tmp_path, codec):
    data, labels = Dataset.write(tmp_path / "data", DATA, codec), Dataset.write(tmp_path / "labels", LABELS, codec)
    loader = DataLoader(data, labels, 2, 32)
    assert loader._table.native is not None
    expected = Sampler(400, 32, Sampler.Mode.IID)
    for batch in islice(loader, 30):
        assert np.array_equal(batch["label"], expected.next())
        assert np.array_equal(batch["data"], DATA[batch["label"]])
    loader.close()
    data.delete([3])
    assert len(data) == 399
