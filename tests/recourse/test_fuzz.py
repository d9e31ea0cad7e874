"""``exact`` and ``infeasible`` are proofs: no small world, tried out in full, has an action that they say is not there.

``python tools/fuzz.py`` runs more of these worlds, or one of them by its seed.
"""

import pytest
from tests.recourse._brute_force import check
from tests.recourse._fuzz_worlds import make_world

CHUNKS, WORLDS = 20, 50


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_proof_is_refuted_by_trying_everything(chunk):
    seeds = range(chunk * WORLDS, (chunk + 1) * WORLDS)
    failures = [failure for seed in seeds for failure in check(make_world(seed))]
    assert not failures, "\n".join(map(str, failures))
