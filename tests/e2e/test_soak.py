"""The short form of scripts/soak."""
import pytest

import soak
import soak_mount


@pytest.mark.parametrize("seed", range(1, 13))
def test_a_round(programs, double_server, seed):
    keep_in = programs.parent.parent / "soak"
    violation = soak.Round(programs, double_server, seed, keep_in).run()
    assert violation is None, f"{violation}; see {keep_in}/seed-{seed} and scripts/soak --rounds 1 --seed {seed}"


@pytest.mark.skipif(not soak_mount.possible(), reason="no FUSE here: scripts/install-deps --test")
@pytest.mark.parametrize("seed", range(1, 9))
def test_a_mount(programs, double_server, seed):
    keep_in = programs.parent.parent / "soak"
    violation = soak_mount.MountRound(programs, double_server, seed, keep_in).run()
    assert violation is None, f"{violation}; see {keep_in}/mount-{seed} and scripts/soak --mounts 1 --seed {seed}"
