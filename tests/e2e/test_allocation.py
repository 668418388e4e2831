"""In a job of a batch system that is not Slurm. None of them can be had here: their documented variables, host files
and tools are played."""
import os

import pytest

NODE = os.uname().nodename
HOSTFILE = f"other 8 all.q@other UNDEFINED\n{NODE} 2 all.q@{NODE} UNDEFINED\n"
SAY = "[ $RANK = 1 ] || echo $WORLD_SIZE processes, $PBS_NODEFILE$LSB_DJOB_HOSTFILE$PE_HOSTFILE$FLUX_URI."

# its name, its variables, what its tool prints of the job's time, and what is said of the job
JOBS = {
    "PBS": ({"PBS_JOBID": "12.server", "PBS_ENVIRONMENT": "PBS_BATCH", "NCPUS": "2", "PBS_NODEFILE": "{hosts}"},
            ("qstat", "Job Id: 12.server\n    resources_used.walltime = 00:30:00\n"
                      "    Resource_List.walltime = 02:00:00\n"), "12.server", "1 h"),
    "Torque": ({"PBS_JOBID": "12.server", "PBS_ENVIRONMENT": "PBS_INTERACTIVE", "PBS_NUM_PPN": "2",
                "PBS_NODEFILE": "{hosts}", "PBS_NP": "4"}, None, "12.server", None),
    "LSF": ({"LSB_JOBID": "7", "LSB_JOBINDEX": "3", "LSB_HOSTS": f"other {NODE} {NODE}",
             "LSB_MCPU_HOSTS": f"other 8 {NODE} 2", "LSB_DJOB_HOSTFILE": "{hosts}"},
            ("bjobs", "1:30 L\n"), "7[3]", "1 h"),
    "Grid Engine": ({"JOB_ID": "5", "SGE_TASK_ID": "undefined", "SGE_ROOT": "/sge", "ARC": "lx-amd64", "NHOSTS": "2",
                     "NSLOTS": "10", "PE_HOSTFILE": "{hosts}"}, None, "5", None),
    "Flux": ({"FLUX_ENCLOSING_ID": "f2Wq", "FLUX_URI": "local:///nonexistent"}, ("flux", "5400\n"), "f2Wq",
             "1 h"),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job(act, two_ranks, name):
    """It is recognised, its part of this node counts, and mpirun is not misled to the other nodes."""
    variables, tool, job, left = JOBS[name]
    system = name.replace("Torque", "PBS")
    hosts = act.scratch / "hosts"
    hosts.write_text(HOSTFILE if name == "Grid Engine" else f"other\n{NODE}\n{NODE}\n")
    act.env |= {key: value.format(hosts=hosts) for key, value in variables.items()}
    if tool:
        tools = act.scratch / "tools"
        tools.mkdir()
        (tools / tool[0]).write_text(f"#!/bin/sh\ncat <<'END'\n{tool[1]}END\n")
        (tools / tool[0]).chmod(0o755)
        act.env["PATH"] = f"{tools}:{act.env['PATH']}"
    checks = {c["what"]: c for c in act.run("doctor", "--json", status=None).json["checks"]}
    said = checks[f"job of {system}"]["text"]
    assert said == f"in job {job} on {NODE}: 2 processors" + (f", {left} left" if left else ""), said
    result = act.run("-n", 2, "local", "sh", "-c", SAY)
    assert "2 processes, ." in result.out, result
    submitted = act.run("-n", 2, "submit", "sh", "-c", SAY)
    assert f"the run is part of job {job} of {system}, and ends with it at the latest" in submitted.err
    run = submitted.out.strip()
    act.run("wait", run)
    assert act.lines(run) == ["2 processes, ."]
    act.fail("-n", 3, "submit", "true", status=6, match="'aml' has 2")
