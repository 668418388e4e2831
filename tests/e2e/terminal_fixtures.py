"""Programs on a terminal."""
import pytest

import tmux


@pytest.fixture
def terminal(act):
    """Starts programs on a terminal."""
    started = []

    def start(*words, **options):
        started.append(tmux.Tmux(act, *words, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()
