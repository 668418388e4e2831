"""The short form of scripts/soak."""
import pytest

import soak


@pytest.mark.parametrize("seed", range(1, 13))
def test_a_round(programs, double_server, seed):
    keep_in = programs.parent.parent / "soak"
    violation = soak.Round(programs, double_server, seed, keep_in).run()
    assert violation is None, f"{violation}; see {keep_in}/seed-{seed} and scripts/soak --rounds 1 --seed {seed}"
