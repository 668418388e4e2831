#!/usr/bin/env python3
"""Runs the conformance suite of the platforms on a cluster of two nodes, or a machine behind ssh, which it starts.

usage: run_platform.py PATH_OF_platform_test slurm|ssh|azureml|kubernetes

Exit status 77 means skipped: Slurm, or what a double needs, is not installed.
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import azureml_double  # noqa: E402
import azurite  # noqa: E402
import kubernetes_double  # noqa: E402
import slurm_bed  # noqa: E402
import sshd  # noqa: E402
from act_tool import Act  # noqa: E402

SKIPPED = 77
CONTAINER = "conformance"


class Missing(Exception):
    """What the platform needs is not there."""


@contextlib.contextmanager
def slurm(programs):
    """A cluster; gives the environment and the working directory of the suite."""
    with slurm_bed.running(nodes=2) as bed:
        yield {"SLURM_CONF": str(bed.conf)}, None


@contextlib.contextmanager
def ssh(programs):
    """A machine with four slots, whose login shell knows nothing of this one's variables."""
    with tempfile.TemporaryDirectory(prefix="act-ssh-") as name:
        server = sshd.Sshd(name)
        try:
            server.shell(sshd.as_machine(slots=4))
            yield {**server.env, "ACT_TEST_HOST": sshd.LOGIN}, None
        finally:
            server.stop()


@contextlib.contextmanager
def azureml(programs):
    """The double, and a project with a cluster of two nodes on it."""
    with tempfile.TemporaryDirectory(prefix="act-platform-") as name:
        folder = pathlib.Path(name)
        project = Act(programs, folder)
        (folder / "double").mkdir()
        with azurite.running(folder / "azurite") as service:
            service.create(CONTAINER)
            double = azureml_double.AzureML(service, folder / "double", graceMs=1000, limited=True, computes={
                "gpu": {"computeType": "AmlCompute", "vmSize": "STANDARD_ND96ASR_V4", "maxNodeCount": 2}})
            try:
                double.use(project, CONTAINER)
                known = ("AZURE_", "ACT_TRUSTED_HOSTS")
                yield {k: v for k, v in project.env.items() if k.startswith(known)}, project.project
                double.check()
            finally:
                double.stop()


@contextlib.contextmanager
def kubernetes(programs):
    """The double, whose pods have the folder for temporary files as a volume, and a project with a cluster on it."""
    with tempfile.TemporaryDirectory(prefix="act-platform-") as name:
        folder = pathlib.Path(name)
        project = Act(programs, folder)
        shared = folder / "shared"
        for new in (folder / "double", shared):
            new.mkdir()
        double = kubernetes_double.Kubernetes(folder / "double", nodes={"gpu-0": {"gpus": 4}, "gpu-1": {"gpus": 4}})
        try:
            if double.why_no_pods():
                raise Missing(double.why_no_pods())
            double.use(project)
            double.cluster("aml", gpu_per_node=4, k8s={"gpu_resource": "nvidia.com/gpu", "volumes": [
                {"mount_path": str(shared), "hostPath": {"path": str(shared)}}]})
            yield {"TMPDIR": str(shared), "ACT_TRUSTED_PROJECTS": "*"}, project.project
            double.check()
        finally:
            double.stop()


PLATFORMS = {"slurm": (slurm, slurm_bed.missing), "ssh": (ssh, sshd.missing),
             "azureml": (azureml, azureml_double.missing), "kubernetes": (kubernetes, kubernetes_double.missing)}


def main():
    program, name = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    platform, missing = PLATFORMS[name]
    if missing():
        print(f"skipped: {missing()}", file=sys.stderr)
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the cluster as well
    try:
        with platform(program.parent.parent / "act") as (env, folder):
            return subprocess.run([program], env={**os.environ, **env, "ACT_TEST_PLATFORM": name},
                                  cwd=folder).returncode
    except Missing as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
