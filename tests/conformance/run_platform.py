#!/usr/bin/env python3
"""Runs the conformance suite of the platforms on a Slurm cluster of two nodes, which it starts.

usage: run_platform.py PATH_OF_platform_test

Exit status 77 means skipped: Slurm is not installed.
"""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import slurm_bed  # noqa: E402

SKIPPED = 77


def main():
    why = slurm_bed.missing()
    if why:
        print(f"skipped: {why}", file=sys.stderr)
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the cluster as well
    with slurm_bed.running(nodes=2) as bed:
        env = dict(os.environ, ACT_TEST_PLATFORM="slurm", SLURM_CONF=str(bed.conf))
        return subprocess.run([sys.argv[1]], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
