"""A machine with GPUs, for `a` and all that it starts: a mount namespace with device files and the driver's own, and a
program that plays nvidia-smi."""
import os
import subprocess

import pytest

UUID = "GPU-{0}{0}{0}{0}{0}{0}{0}{0}-1234-5678-9abc-def012345678"
HOLDS = """
mount --bind {scratch} /mnt
mount -t tmpfs -o mode=1777 gpus /tmp
mkdir {scratch}
mount --bind /mnt {scratch}
mount -t tmpfs gpus /proc/driver
mount -t tmpfs -o mode=1777 gpus /run/lock
mkdir -p {dev}
for f in null zero full random urandom tty; do touch {dev}/$f; mount --bind /dev/$f {dev}/$f; done
mkdir {dev}/shm {dev}/pts
mount -t tmpfs -o mode=1777 gpus {dev}/shm
mount --rbind /dev/pts {dev}/pts
ln -s pts/ptmx {dev}/ptmx
ln -s /proc/self/fd {dev}/fd
ln -s /proc/self/fd/0 {dev}/stdin
ln -s /proc/self/fd/1 {dev}/stdout
ln -s /proc/self/fd/2 {dev}/stderr
{made}
mount --rbind {dev} /dev
echo ready
exec sleep 3600
"""
SMI = """#!/bin/sh
[ -e "{folder}/hangs" ] && exec sleep 600
[ -e "{folder}/fails" ] && {{ echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18; }}
case $1 in
--query-gpu=*) cat "{folder}/cards" ;;
--query-compute-apps=*) cat "{folder}/users" ;;
-L) cat "{folder}/listed" ;;
topo) cat "{folder}/topology" ;;
esac
"""


class GpuMachine:
    """n cards. by_driver: the driver lists them, with UUIDs; else there are only device files."""

    def __init__(self, act, n, by_driver=True, real_devices=False):
        self.act, self.n = act, n
        self.folder = act.scratch / "smi"
        self.folder.mkdir()
        made = []
        for i in range(n):
            device = f"{act.scratch}/dev/nvidia{i}"
            made.append(f"mknod -m 666 {device} c 195 {i}" if real_devices else f"touch {device}; chmod 666 {device}")
            if by_driver:
                card = f"/proc/driver/nvidia/gpus/0000:{16 * (i + 1):02x}:00.0"
                information = f"Model: \\t NVIDIA H100\\nGPU UUID: \\t {UUID.format(i)}\\nDevice Minor: \\t {i}\\n"
                made.append(f"mkdir -p {card}; printf '{information}' > {card}/information")
        script = HOLDS.format(scratch=act.scratch, dev=act.scratch / "dev", made="\n".join(made))
        self.holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-ec", script],
                                       stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"
        self.prefix = ("nsenter", f"--target={self.holder.pid}", "--mount", f"--wdns={act.project}")
        act.prefix = self.prefix

    def end(self):
        self.holder.kill()
        self.holder.wait()

    def smi(self, **used):
        """From now on nvidia-smi says that a card 'g1' has so many MiB in use, and who computes: see compute()."""
        (self.folder / "cards").write_text("".join(
            f"{i}, {UUID.format(i)}, NVIDIA H100, {used.get(f'g{i}', 4)}, 81559, Disabled\n" for i in range(self.n)))
        for name in ("users", "listed", "topology"):
            (self.folder / name).touch()
        bin_folder = self.act.scratch / "smi-bin"
        if not bin_folder.exists():
            bin_folder.mkdir()
            (bin_folder / "nvidia-smi").write_text(SMI.format(folder=self.folder))
            (bin_folder / "nvidia-smi").chmod(0o755)
            self.act.env["PATH"] = f"{bin_folder}:{self.act.env['PATH']}"

    def compute(self, *users):
        """These processes compute: (card, pid, program, MiB)."""
        text = "".join(f"{UUID.format(card)}, {pid}, {program}, {mib}\n" for card, pid, program, mib in users)
        temporary = self.folder / "users.new"
        temporary.write_text(text)
        temporary.rename(self.folder / "users")


@pytest.fixture
def gpu_machine(act):
    """gpu_machine(n) makes the machine; needs root for the mount namespace."""
    if os.geteuid() != 0:
        pytest.skip("only root may make device files and mount namespaces")
    made = []

    def make(n, **options):
        made.append(GpuMachine(act, n, **options))
        return made[-1]

    yield make
    for machine in made:
        machine.end()
