"""The verbs that ask a cluster, on Slurm: what they show, and what they do while its controller does not answer and
when it starts a run anew."""
import json
import os
import pathlib
import signal

RANKS = 4  # on two nodes


def of_rank(out, rank):
    return [line[4:] for line in out.splitlines() if line.startswith(f"[{rank}] ")]


def end_watch(process):
    """What a watch said until its end."""
    out, err = process.communicate()
    return out.decode(), err.decode(), process.returncode


def test_follow_through_a_requeue(act, lab):
    """The words of both attempts, in their order, each once."""
    lab.configure(preemption_allowed=True)
    run = lab.shell("echo try $RANK; if [ -e seen-$RANK ]; then echo again; exit; fi; touch seen-$RANK; exec sleep 300",
                    n=RANKS)
    lab.until_text(run, "try 3", rank=3)
    watches = [act.start("logs", "-f", *words, run) for words in (["--all"], ["--rank", "3"])]
    lab.bed.run("scontrol", "requeue", lab.bed.job(run))
    out, err, status = end_watch(watches[0])
    assert (status, err) == (0, "attempt 2 begins\nCompleted\n")
    for rank in range(RANKS):
        words = [line for line in of_rank(out, rank) if "Terminated" not in line]
        assert words == [f"try {rank}", f"try {rank}", "again"]
    out, err, status = end_watch(watches[1])
    assert (status, err) == (0, "attempt 2 begins\nCompleted\n")
    assert out.replace("Terminated\n", "") == "try 3\ntry 3\nagain\n"
    assert act.run("logs", "--attempt", "1", run).out.startswith("try 0\n")
    assert act.info(run)["attempt"] == 2
    assert "attempt   2" in act.run("q", run).out
    copies = act.project / f"assets/{run}"
    assert (copies / "user_logs/std_log_process_1.txt").read_text() == "try 1\nagain\n"
    assert (copies / "attempts/1/user_logs/std_log_process_1.txt").read_text().startswith("try 1\n")


def shut_down_controller(bed):
    """In order, so that it knows afterwards what it knew."""
    pid = bed.pid("slurmctld")
    os.kill(pid, signal.SIGTERM)
    bed.until(lambda: not pathlib.Path(f"/proc/{pid}/exe").exists(), "the controller is down")


def test_watches_while_the_controller_is_away(act, lab):
    gate = act.scratch / "gate"
    ended = f"{act.scratch}/ended"
    run = lab.shell(f"echo up; until [ -e {gate} ]; do sleep 0.1; done; echo down; touch {ended}-$RANK; "
                    f"until [ $(ls -d {ended}-* | wc -l) = {RANKS} ]; do sleep 0.1; done; exit 3", n=RANKS)
    lab.until_text(run, "up")
    follow, wait = act.start("logs", "-f", "--all", run), act.start("wait", run)
    assert b"up" in follow.stdout.readline()
    shut_down_controller(lab.bed)
    try:
        # at once: Slurm's own programs take their time before they give up
        asked = [act.start(*words) for words in (["-no-wl", "q", run], ["-c", "lab", "summary"], ["-c", "lab", "blame"],
                                                 ["q"], ["-c", "lab", "doctor", "--json"])]
        *refused, table, doctor = [end_watch(process) for process in asked]
        for out, err, status in refused:
            assert status == 5 and out == "" and err.startswith("act: ") and "controller" in err
        assert table[2] == 0 and run in table[0] and "may be old" in table[1]
        checks = {c["what"]: c for c in json.loads(doctor[0])["checks"]}
        assert doctor[2] == 1 and not checks["controller"]["ok"] and checks["sbatch"]["ok"]
        gate.touch()
    finally:
        lab.bed.start()
    out, err, status = end_watch(follow)
    assert status == 3
    assert err.count("controller") <= err.count("goes on until it answers") + err.count("it answers again")
    for rank in range(RANKS):
        assert ["up", *of_rank(out, rank)][-2:] == ["up", "down"]
    _, err, status = end_watch(wait)
    assert status == 3, "the status of the run, not of the watch"
    assert err.count("goes on until it answers") == err.count("it answers again")


def test_summary_of_a_drained_node(act, lab):
    run = lab.shell("echo up; exec sleep 300", n=2)
    lab.until_text(run, "up")
    busy = act.run("nodes", "--json", run).json["nodes"][0]["name"]
    other = "n3" if busy != "n3" else "n1"
    lab.bed.run("scontrol", "update", f"nodename={other}", "state=drain", "reason=test")
    try:
        whole = act.run("-c", "lab", "summary", "--json").json
        assert whole["total"]["nodes"] == {"total": 3, "idle": 1, "busy": 1, "down": 1}
        assert whole["total"]["gpus"] == {"total": 12, "idle": 6, "busy": 2, "down": 4}
        assert whole["own_runs"] == {"running": 1, "queued": 0}
        queued = lab.submit("true", n=6)
        act.until(lambda: act.info(queued)["reason"], "it says what it waits for")
        assert "waits" in act.run("qq").out
        assert act.run("-c", "lab", "summary", "--json").json["total"]["jobs"]["queued"] == 1
        act.run("abort", queued)
    finally:
        lab.bed.run("scontrol", "update", f"nodename={other}", "state=resume")
    act.run("abort", run)


def test_nodes_of_a_run_that_has_ended(act, lab):
    """Also while Slurm frees them one after the other, and when it has forgotten the job."""
    run = lab.shell("echo up; exec sleep 300", n=RANKS)
    lab.until_text(run, "up", rank=3)
    shape = [(n["name"], n["first_rank"], n["ranks"]) for n in act.run("nodes", "--json", run).json["nodes"]]
    assert shape == [("n1", 0, 2), ("n2", 2, 2)]
    nodes = act.run("nodes", "--json", run).json["nodes"]
    assert [(n["address"], n["port"]) for n in nodes] == [("127.0.0.1", None)] * 2
    act.run("abort", run)
    after = act.run("nodes", "--json", run).json["nodes"]
    assert [(n["name"], n["first_rank"], n["ranks"]) for n in after] == shape


def test_command_on_each_node(act, lab):
    run = lab.shell("echo up; exec sleep 300", n=RANKS)
    lab.until_text(run, "up", rank=3)
    for number in range(2):
        words = ("sh", "-c", 'pwd; echo "$ACT_RUN_ID"; printf "<%s>" "$@"; exit 7', "sh", "a b", "", "$HOME")
        result = act.run("ssh", run, str(number), "--", *words, status=7)
        code, name, arguments = result.out.splitlines()
        assert code.endswith(f"/nodes/{number}/code") and name == run and arguments == "<a b><><$HOME>"
    act.fail("ssh", run, "n9", status=3, match="no node 'n9'.*n1, n2")
    act.run("abort", run)


def test_a_run_stays_where_it_was_submitted(act, lab):
    """Whatever the cluster file says afterwards."""
    elsewhere = act.scratch / "elsewhere"
    run = lab.shell("echo here", before=("-p", f"slurm: {{root: {elsewhere}}}"))
    act.run("wait", run)
    assert act.run("logs", run).out == "here\n" and (elsewhere / "runs" / run).is_dir()
    (act.project / "aux_data/aml/lab.yaml").unlink()
    assert act.lines(run) == ["here"]


def test_doctor_of_slurm(act, lab):
    act.run("-c", "lab", "doctor", "--json")
    assert not (lab.root / "runs").exists()
    lab.configure(slurm={"partition": "nosuch"})
    bad, = [c for c in act.run("-c", "lab", "doctor", "--json", status=1).json["checks"] if not c["ok"]]
    assert bad["what"] == "partition" and "'nosuch'" in bad["text"] and "main, low" in bad["text"]
    (act.scratch / "file").write_text("")
    lab.configure(slurm={"root": str(act.scratch / "file/below")})
    checks = act.run("-c", "lab", "doctor", "--json", status=1).json["checks"]
    assert any("file/below" in c["text"] for c in checks if not c["ok"])


def test_doctor_looks_for_a_folder_of_the_nodes(act, lab):
    place = act.scratch / "place"
    lab.configure(config_param={"data_folder": {"mode": "path", "path": str(place)}})

    def found(status):
        checks = act.run("-c", "lab", "doctor", "--json", status=status).json["checks"]
        return next(c for c in checks if c["what"] == "folder 'data'")

    assert found(1)["text"].startswith(f"there is no folder '{place}' on a node: make it there")
    place.mkdir()
    assert found(0)["ok"]


def test_runs_of_another_machine_are_found_on_the_cluster(act, lab):
    """A machine whose ledger knows nothing finds a run on the cluster that -c names, by its id or a piece of it."""
    run = lab.shell("echo from there; exit 4")
    act.run("wait", run, status=4)
    elsewhere = {"ACT_HOME": str(act.scratch / "another-home")}
    assert act.fail("q", run, status=3, env=elsewhere)
    for words in (["-c", "lab", "logs", run], ["logs", run[-8:]]):
        assert act.run(*words, env=elsewhere).out == "from there\n"
    found = act.run("-c", "lab", "q", "--json", run[-8:], env={"ACT_HOME": str(act.scratch / "third-home")}).json
    assert found["runs"][0]["state"] == "Failed" and found["runs"][0]["exit_status"] == 4
    act.fail("-c", "lab", "q", "exp_1700000000_00000000", status=3, env=elsewhere)
