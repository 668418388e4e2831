"""What the agent does on a node beside running the command: metrics, the whole output, its private folder."""
import hashlib
import json
import os

import pytest

GPUS = "0, 97, 30000, 40960, 61, 312.55, 0\n1, [N/A], 12, 40960, 30, [N/A], [N/A]\n"


@pytest.fixture
def program(act):
    """program(name, script): a shell script in front of PATH."""
    folder = act.scratch / "bin"
    folder.mkdir()
    act.env["PATH"] = f"{folder}:{act.env['PATH']}"

    def write(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path
    return write


def metrics(folder):
    """The samples of a node, by its name."""
    return {path.stem: [json.loads(line) for line in path.read_text().splitlines()]
            for path in (folder / "metrics").iterdir()}


# ---- on this machine


@pytest.mark.smoke
def test_short_run_has_metrics(act, program):
    program("nvidia-smi", f"[ \"$1\" = --query-gpu=index,utilization.gpu,memory.used,memory.total,temperature.gpu,"
                          f"power.draw,ecc.errors.uncorrected.volatile.total ] || exit 1\ncat <<END\n{GPUS}END")
    run = act.finish("sh", "-c", "until [ -s $AZ_BATCHAI_STDOUTERR_DIR/../metrics/*.jsonl ]; do sleep 0.1; done; "
                     "sleep 0.5")  # some ticks of the clock go by
    (samples,) = metrics(act.run_dir(run)).values()
    assert len(samples) >= 2
    assert [gpu["busy"] for gpu in samples[0]["gpus"]] == [0.97, None]
    assert samples[-1]["gpus"] is None, "nothing waits for it at the end"
    for sample in samples:
        assert sample["cpu"]["cores"] == os.cpu_count()
        assert 0 < sample["memory"]["available"] < sample["memory"]["total"]
        assert sample["memory"]["run"] > 0 and sample["disk"]["run"]["free"] > 0
    assert samples[0]["time"] < samples[-1]["time"]
    assert samples[0]["cpu"]["busy"] is None and 0 <= samples[-1]["cpu"]["busy"] <= 1


@pytest.mark.parametrize("script", ["trap '' TERM; while :; do sleep 1000; done", "echo garbage", "exit 9"],
                         ids=["hangs", "garbage", "fails"])
def test_bad_nvidia_smi_holds_nothing_up(act, program, script):
    program("nvidia-smi", script)
    run = act.finish("echo", "hello")
    (samples,) = metrics(act.run_dir(run)).values()
    assert len(samples) >= 2 and samples[0]["gpus"] is None
    assert act.lines(run) == ["hello"]


def test_output_at_full_speed_is_complete(act, two_ranks):
    """100 MB from each of two ranks, as fast as they can: standard output is the log itself."""
    act.write("speak.py", "import os, sys\n"
                          "block = (os.environ['RANK'] * 99 + '\\n').encode() * 10000\n"
                          "for _ in range(100): sys.stdout.buffer.write(block)\n")
    run = act.finish("python3", "speak.py", before=("-n", "2"))
    for rank in range(2):
        said = (str(rank) * 99 + "\n").encode() * 1_000_000
        log = act.run_dir(run) / f"user_logs/std_log_process_{rank}.txt"
        assert log.stat().st_size == len(said)
        assert hashlib.sha256(log.read_bytes()).digest() == hashlib.sha256(said).digest()


def test_nothing_is_left_on_the_nodes_disk(act, two_ranks):
    temp = act.scratch / "tmp"
    temp.mkdir()
    act.env["TMPDIR"] = str(temp)
    act.finish("sh", "-c", "ls $TMPDIR/act-*/$ACT_RUN_ID/0/prepared.1.json", before=("-n", "2"))
    act.finish("false", before=("-n", "2"), status=1)
    (base,) = temp.glob("act-*")
    assert list(base.iterdir()) == []


def test_folder_of_others_is_not_used(act, two_ranks):
    temp = act.scratch / "tmp"
    taken = temp / f"act-{os.getuid()}"
    taken.mkdir(parents=True)
    taken.chmod(0o777)
    act.env["TMPDIR"] = str(temp)
    act.finish("sh", "-c", "ls -d $TMPDIR/act-*/$ACT_RUN_ID/0", before=("-n", "2"))
    assert list(taken.iterdir()) == [] and taken.stat().st_mode & 0o777 == 0o777
    (other,) = temp.glob(f"{taken.name}.*")
    assert list(other.iterdir()) == [] and other.stat().st_mode & 0o777 == 0o700
