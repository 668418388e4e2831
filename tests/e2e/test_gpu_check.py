"""scripts/gpu-check, where there is no GPU, and where the driver is played."""
import pathlib
import subprocess

from gpu_machine import UUID

ROOT = pathlib.Path(__file__).parents[2]

def check(act, path, prefix=()):
    env = act.env | {"PATH": path, "ACT_BUILD": str(act.programs.parent), "TMPDIR": str(act.scratch)}
    return subprocess.run([*prefix, ROOT / "scripts/gpu-check"], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)


def test_without_a_gpu(act):
    done = check(act, "/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (77, "gpu-check: skipped, nothing was tried: there is no nvidia-smi in "
                                              "PATH, so this machine has no NVIDIA GPU\n"), done


def test_with_a_driver_that_is_played(act, gpu_machine):
    machine = gpu_machine(2)
    bin_folder, holder = act.scratch / "bin", act.scratch / "holder"
    bin_folder.mkdir()
    first, second = UUID.format(0), UUID.format(1)
    (bin_folder / "nvidia-smi").write_text(f"""#!/bin/sh
used=4
kill -0 "$(cat {holder} 2>/dev/null)" 2>/dev/null && used=8156
case $1 in
*driver_version) printf '%s, 81559, NVIDIA H100, 550.54\\n' '0, {first}' '1, {second}' ;;
--query-gpu=*) printf '%s, 81559, Disabled\\n' "0, {first}, NVIDIA H100, $used" '1, {second}, NVIDIA H100, 4' ;;
esac
""")
    (bin_folder / "nvidia-smi").chmod(0o755)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", bin_folder / "libcuda.so.1", ROOT / "tests/gpu/libcuda.c"],
                   check=True)
    act.env |= {"PLAYED_HOLDER": str(holder), "LD_LIBRARY_PATH": str(bin_folder)}
    done = check(act, f"{bin_folder}:/usr/bin:/bin", machine.prefix)
    assert done.returncode == 0, done
    assert "in use is not given out: waits for 1 GPU: GPU 0 " in done.stdout
    assert done.stdout.endswith("gpu-check: all is well\n")
