"""Train a network of two layers with NumPy, stop, and resume on another number of ranks with the same losses."""

import json
import os
import tempfile

import blobs
import numpy as np

STEPS, STOP, RATE = 60, 25, 0.3


def new_weights():
    """The weights that every run begins with."""
    rng = np.random.default_rng(3)
    return [
        rng.normal(size=(blobs.FEATURES, 32)) / 8,
        np.zeros(32),
        rng.normal(size=(32, blobs.CLASSES)) / 6,
        np.zeros(blobs.CLASSES),
    ]


def sums(weights, batch):
    """Sum of the losses of a batch, and of their gradients."""
    w1, b1, w2, b2 = weights
    x, y = batch["x"].astype("f8"), batch["y"][:, 0]
    hidden = np.maximum(x @ w1 + b1, 0)
    logits = hidden @ w2 + b2
    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y]).sum()
    p[np.arange(len(y)), y] -= 1
    back = (p @ w2.T) * (hidden > 0)
    return loss, [x.T @ back, back.sum(axis=0), hidden.T @ p, p.sum(axis=0)]


def train(path, world, steps, checkpoint=None):
    """Train for some steps from the beginning or a checkpoint; the losses, and a checkpoint of where it ends."""
    weights, loaders = new_weights(), blobs.loaders(path, world)
    if checkpoint is not None:
        weights = [np.array(w) for w in checkpoint["weights"]]
        for loader in loaders:
            loader.load_state_dict(checkpoint["loader"])
    losses = []
    for _ in range(steps):
        # What ranks do side by side, and the sum that an all-reduce makes.
        batches = [next(loader) for loader in loaders]
        parts = [sums(weights, batch) for batch in batches]
        n = sum(len(batch["y"]) for batch in batches)
        losses.append(sum(loss for loss, _ in parts) / n)
        for i, w in enumerate(weights):
            w -= RATE * sum(gradients[i] for _, gradients in parts) / n
    state = loaders[0].state_dict()
    for loader in loaders:
        loader.close()
    return losses, {"weights": [w.tolist() for w in weights], "loader": state}


def main():
    """Compare the losses with a break and without."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "blobs.pts")
        blobs.write(path)
        whole, _ = train(path, 1, STEPS)
        before, checkpoint = train(path, 2, STOP)
        checkpoint = json.loads(json.dumps(checkpoint))
        after, _ = train(path, 3, STEPS - STOP, checkpoint)
    print("state:", checkpoint["loader"])
    print("step  one rank  two ranks, then three")
    for step in range(0, STEPS, 6):
        print(f"{step:4}  {whole[step]:8.4f}  {(before + after)[step]:8.4f}")
    assert np.allclose(whole, before + after, rtol=1e-9), "the losses differ"
    assert whole[-1] < whole[0] / 4, "nothing was learned"
    print("the losses are the same")


if __name__ == "__main__":
    main()
