"""The training examples: a run that is stopped and resumed on another number of ranks has the same losses."""

import subprocess
import sys

import pytest

from conftest import ROOT


@pytest.mark.parametrize("example", ["numpy_mlp", "flax_mlp"])
def test_the_losses_are_the_same_after_a_break(example):
    if example == "flax_mlp":
        pytest.importorskip("flax", reason="needs Flax")
    script = ROOT / "examples/training" / f"{example}.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("the losses are the same\n")
