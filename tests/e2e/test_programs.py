"""How the programs are built: what makes a mistake in memory end in a crash and not in somebody else's hands."""
import pathlib
import re
import subprocess

import elf
import pytest

pytestmark = pytest.mark.smoke

# What a function that is called through a pointer begins with: endbr64; one of bti c, paciasp, pacibsp
LANDINGS = {elf.X86_64: [b"\xf3\x0f\x1e\xfa"],
            elf.AARCH64: [b"\x5f\x24\x03\xd5", b"\x3f\x23\x03\xd5", b"\x7f\x23\x03\xd5"]}


@pytest.fixture(params=["act", "act-node"])
def program(request, programs):
    return elf.Elf(programs / request.param)


def is_optimised(programs):
    cache = (programs.parent / "CMakeCache.txt").read_text()
    return not re.search(r"^CMAKE_BUILD_TYPE:\w+=Debug$", cache, re.M)


def test_runs_at_any_address(program, programs):
    if not is_optimised(programs):
        pytest.skip("with sanitizers, programs start sooner at a fixed address")
    assert program.type == elf.DYN
    assert program.dynamic[elf.DT_FLAGS_1][0] & elf.DF_1_PIE


def test_leaks_are_seen(act, programs):
    """With the options that all tests give the programs."""
    if is_optimised(programs):
        pytest.skip("without sanitizers")
    done = subprocess.run([programs.parent / "tests/leaks"], env=act.env, capture_output=True, check=False)
    assert done.returncode and b"LeakSanitizer: detected memory leaks" in done.stderr, done


def test_tables_of_the_linker_are_read_only_before_main(program):
    assert len(program.of_type(elf.PT_GNU_RELRO)) == 1
    assert program.dynamic[elf.DT_FLAGS_1][0] & elf.DF_1_NOW


def test_no_memory_is_written_and_executed(program):
    stack, = program.of_type(elf.PT_GNU_STACK)
    assert not stack.flags & elf.PF_X
    assert not [s for s in program.segments if s.flags & elf.PF_W and s.flags & elf.PF_X]


def test_stack_has_canaries(program):
    assert "__stack_chk_fail" in program.symbols


def test_functions_check_sizes(program, programs):
    if not is_optimised(programs):
        pytest.skip("sizes are checked in optimised programs")
    assert {"__snprintf_chk", "__vsnprintf_chk"} <= program.symbols.keys()


def test_jumps_land_where_functions_begin(program):
    """The program's own code. The note that lets the kernel enforce it takes an operating system whose start files and
    static libraries have it too; Debian 12 has none in them."""
    if program.machine not in LANDINGS:
        pytest.skip("the processor knows no such thing")
    found = program.code("main", 8)
    assert any(landing in found for landing in LANDINGS[program.machine]), found.hex()


def test_agent_loads_nothing(programs):
    agent = elf.Elf(programs / "act-node")
    assert not agent.of_type(elf.PT_INTERP)
    assert elf.DT_NEEDED not in agent.dynamic


def test_threat_model_names_what_is_there():
    root = pathlib.Path(__file__).resolve().parents[2]
    named = re.findall(r"`((?:act|cmake|scripts|tests)/[^`]+)`", (root / "docs/threat-model.md").read_text())
    assert len(named) > 20
    assert [name for name in named if not (root / name).exists()] == []
