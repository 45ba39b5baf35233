"""The sampler: loaderx's streams, epochs, ranks, states."""

import json
import pickle
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tensilo import Mode, Sampler

FIXTURES = Path(__file__).resolve().parents[2] / "crates/loader/tests/fixtures"
STREAMS = json.loads((FIXTURES / "sampler_streams.json").read_text())
ORDERS = [v for v in json.loads((FIXTURES / "permutation.json").read_text()) if v["kind"] in ("epoch", "blocks")]


@pytest.mark.parametrize("vector", STREAMS, ids=lambda v: f"{v['mode']}-{v.get('seed')}-{v['length']}")
def test_the_streams_of_loaderx_are_the_same_here(vector):
    expected = vector.get("first_two_batches") or sum(vector["first_six_batches"], [])
    sampler = Sampler(vector["length"], vector["batch"], Mode[vector["mode"]], vector.get("seed", 42))
    batches = list(islice(sampler, len(expected) // vector["batch"]))
    assert all(ids.dtype == np.uint64 and ids.shape == (vector["batch"],) for ids in batches)
    assert np.concatenate(batches).tolist() == expected


@pytest.mark.parametrize("vector", ORDERS, ids=lambda v: f"{v['kind']}-{v['len']}-{v['seed']}")
def test_epochs_equal_the_independent_implementation(vector):
    shuffle = (vector["block"], vector["window"]) if vector["kind"] == "blocks" else True
    epochs = vector["epoch"] + 1
    sampler = Sampler(vector["len"], vector["len"], "epoch", vector["seed"], epochs=epochs, shuffle=shuffle)
    assert list(sampler)[-1].tolist() == vector["ids"]


def test_ranks_share_every_step_in_order():
    whole = Sampler(100, 32, epochs=2)
    ranks = [Sampler(100, 32, epochs=2, rank=r, world=3) for r in range(3)]
    assert len(whole) == 8
    for step in whole:
        assert np.concatenate([r.next() for r in ranks]).tolist() == step.tolist()
    with pytest.raises(StopIteration):
        ranks[0].next()


def test_a_state_is_plain_and_resumes_on_another_world_and_in_another_process():
    sampler = Sampler(100, 32, "iid", 7, rank=1, world=2)
    list(islice(sampler, 5))
    state = json.loads(json.dumps(sampler.state_dict()))
    copy = pickle.loads(pickle.dumps(sampler))
    resumed = [Sampler(100, 32, "iid", 7, rank=r, world=4) for r in range(4)]
    for r in resumed:
        r.load_state_dict(state)
    whole = list(islice(Sampler(100, 32, "iid", 7), 8))
    for step in whole[5:]:
        assert np.concatenate([r.next() for r in resumed]).tolist() == step.tolist()
        assert copy.next().tolist() == step[16:].tolist()
    with pytest.raises(ValueError, match="another seed"):
        Sampler(100, 32, "iid", 8).load_state_dict(state)
    with pytest.raises(ValueError, match='no "offset"'):
        Sampler(100, 32, "iid", 7).load_state_dict({k: v for k, v in state.items() if k != "offset"})


def test_what_makes_no_sense_is_refused():
    for arguments, named in [
        ((0, 4), {}),
        ((4, 0), {}),
        ((4, 4, 9), {}),
        ((4, 4, "shuffled"), {}),
        ((4, 4, "iid"), {"epochs": 1}),
        ((4, 4), {"rank": 1}),
        ((4, 2), {"world": 3}),
        ((4, 8), {"epochs": 1, "drop_last": True}),
        ((4, 4, "iid"), {"weights": [(4, 1)]}),
    ]:
        with pytest.raises(ValueError):
            Sampler(*arguments, **named)
    with pytest.raises(TypeError):
        len(Sampler(4, 4))
