"""The model of Redis in tests/sim says what a real redis-server says, to the byte."""

import os

import pytest
import twins
from sequences import Sequence, is_ordered

SEQUENCES = int(os.environ.get("SEQUENCES", "400"))
FIRST_SEED = int(os.environ.get("SEED", "1"))
BATCH = 100


@pytest.fixture(scope="module")
def real():
    real = twins.Real()
    yield real
    real.close()


@pytest.mark.parametrize("batch", range(0, SEQUENCES, BATCH))
def test_random_sequences(real, batch):
    plays, heard = [], []
    for seed in range(FIRST_SEED + batch, FIRST_SEED + min(batch + BATCH, SEQUENCES)):
        steps = Sequence(seed).make()
        first_id, began_us, got = real.play(steps)
        plays.append((first_id, began_us, steps))
        heard.append((seed, got))
    for (_, _, steps), (seed, got), shown in zip(plays, heard, twins.play_model(plays, real.peer)):
        at = twins.first_difference(steps, got, shown, is_ordered)
        if at is not None:
            fewer, found = twins.shrink(real, steps[: at + 1], is_ordered)
            pytest.fail(f"seed {seed}:\n{twins.describe(fewer, found or (at, got[at], shown[at]))}", pytrace=False)
