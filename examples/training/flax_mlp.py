"""Train a network of two layers with Flax, stop, and resume on another number of ranks with the same losses."""

import os
import tempfile

import blobs
import flax.linen as nn
import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np

STEPS, STOP, RATE = 60, 25, 0.3


class Classifier(nn.Module):
    """A hidden layer of 32."""

    @nn.compact
    def __call__(self, x):
        """Logits of the classes."""
        return nn.Dense(blobs.CLASSES)(nn.relu(nn.Dense(32)(x)))


MODEL = Classifier()


def new_weights():
    """The weights that every run begins with."""
    return MODEL.init(jax.random.key(0), jnp.zeros((1, blobs.FEATURES)))


def loss_sum(weights, x, y):
    """Sum of the losses of a batch."""
    chosen = jax.nn.log_softmax(MODEL.apply(weights, x))
    return -jnp.take_along_axis(chosen, y, axis=1).sum()


sums = jax.jit(jax.value_and_grad(loss_sum))


def train(path, world, steps, checkpoint=None):
    """Train for some steps from the beginning or a checkpoint; the losses, and a checkpoint of where it ends."""
    weights, loaders = new_weights(), blobs.loaders(path, world)
    if checkpoint is not None:
        weights = flax.serialization.from_bytes(weights, checkpoint["weights"])
        for loader in loaders:
            loader.load_state_dict(checkpoint["loader"])
    losses = []
    for _ in range(steps):
        # JAX computes later and may look at an array for as long as it lives: it gets copies.
        batches = [{name: jnp.array(a) for name, a in next(loader).items()} for loader in loaders]
        parts = [sums(weights, batch["x"], batch["y"]) for batch in batches]
        n = sum(len(batch["y"]) for batch in batches)
        losses.append(float(sum(loss for loss, _ in parts)) / n)
        gradients = jax.tree.map(lambda *g: sum(g) / n, *(g for _, g in parts))
        weights = jax.tree.map(lambda w, g: w - RATE * g, weights, gradients)
    state = loaders[0].state_dict()
    for loader in loaders:
        loader.close()
    return losses, {"weights": flax.serialization.to_bytes(weights), "loader": state}


def main():
    """Compare the losses with a break and without."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "blobs.pts")
        blobs.write(path)
        whole, _ = train(path, 1, STEPS)
        before, checkpoint = train(path, 2, STOP)
        after, _ = train(path, 3, STEPS - STOP, checkpoint)
    print("step  one rank  two ranks, then three")
    for step in range(0, STEPS, 6):
        print(f"{step:4}  {whole[step]:8.4f}  {(before + after)[step]:8.4f}")
    # 32-bit sums in another order.
    assert np.allclose(whole, before + after, rtol=1e-3), "the losses differ"
    assert whole[-1] < whole[0] / 4, "nothing was learned"
    print("the losses are the same")


if __name__ == "__main__":
    main()
