"""What is left of a run, and what it has written: a rm RUN:, a files RUN, a cat -f RUN:PATH."""
import datetime
import json
import resource
import shutil
import signal
import sqlite3
import urllib.request

import pytest

from test_kubernetes import K8S
from test_many_runs import listed

LOG = "user_logs/std_log_process_0.txt"


def lines(result):
    return [json.loads(line) for line in result.out.splitlines()]


def files_of(act, run, *words):
    return {row["path"]: row for row in lines(act.run("files", "--json", *words, run)) if row["kind"] == "file"}


# ---- a files RUN


@pytest.mark.smoke
def test_files_of_a_run(act):
    act.write("output/old.txt", b"before", mtime=1_000_000_000)
    act.run("u", "output")
    run = act.finish("sh", "-c", "echo hello; mkdir output/of; echo 12345 > output/of/model.pt", before=("-n", "1"))
    logs = files_of(act, run)
    assert logs[f"{run}:{LOG}"]["size"] == len("hello\n") and all(path.startswith(f"{run}:") for path in logs)
    assert [name.split(":")[1] for name in logs] == act.run("ls", "-r", f"{run}:").out.splitlines()
    assert files_of(act, run, "-d", "logs") == logs
    folders = {row["path"]: row for row in lines(act.run("files", "--json", run)) if row["kind"] == "folder"}
    assert set(folders) == {"data", "output"} and folders["output"]["store"] == f"folder:{act.store}"
    shown = act.run("files", run)
    assert f"{run}:{LOG}" in shown.out and "output  " in shown.out and f"folder:{act.store}" in shown.out
    code = f"{act.home}/runs/{run}/code"
    assert f"what it wrote outside of these folders is in its own copy of the project '{code}'\n" in shown.err
    assert f"works in  {code}\n" in act.run("-no-wl", "q", run).out
    assert "outside" not in act.run("files", "-d", "output", run).err
    written = files_of(act, run, "-d", "output")
    assert list(written) == ["output/of/model.pt"] and written["output/of/model.pt"]["size"] == len("12345\n")
    shown = act.run("files", "-d", "output", run)
    assert "output/of/model.pt" in shown.out and "1 file in that folder was written at another time" in shown.err
    assert list(files_of(act, run, "-d", "output", "--all")) == ["output/of/model.pt", "output/old.txt"]
    assert act.run("files", "-d", "output/", run).out == shown.out, "as the completion of a shell writes it"
    url, = act.run("files", "-d", "output", "--urls", run).out.splitlines()
    assert url.startswith("file://") and url == act.run("url", "output/of/model.pt").out.strip()
    assert f"{run}:{LOG}" in act.run("files", "--urls", run).out.splitlines()


def test_files_in_a_folder_as_it_was_mapped_then(act):
    run = act.finish("sh", "-c", "echo 1 > output/one", before=("-n", "1"))
    act.cluster("aml", below="elsewhere")
    assert list(files_of(act, run, "-d", "output")) == ["output/one"]
    act.cluster("aml", folders=("data",))
    assert list(files_of(act, run, "-d", "output")) == ["output/one"], "the account is that of data"
    assert "output" in act.run("files", run).out


def test_files_of_a_later_run_are_not_its(act):
    """By their own time, where the store knows it, which is not when they came there."""
    first = act.finish("sh", "-c", "echo 1 > output/one", before=("-n", "1"))
    ended = act.run("q", "--json", "-no-wl", first).json["runs"][0]["ended"]
    act.write("output/later", b"2", mtime=datetime.datetime.fromisoformat(ended).timestamp() + 60)
    act.run("u", "output/later")
    assert list(files_of(act, first, "-d", "output")) == ["output/one"]
    assert "1 file in that folder was written at another time" in act.run("files", "-d", "output", first).err


def test_files_that_cannot_be_listed(act):
    run = act.finish("true", before=("-n", "1"))
    act.fail("files", "-d", "outputs", run, status=3, match="had no folder 'outputs'; it has: logs, data, output")
    act.fail("files", "--all", run, status=2, match="--all is about a folder: which one")
    act.fail("files", "--expires", "1h", run, status=2, match="--expires is about URLs")
    for folder in ((), ("-d", "logs/")):
        act.fail("files", "--urls", "--expires", "1h", *folder, run, status=2, match="--expires has no effect on logs")
    act.fail("files", "--all", "-d", "logs", run, status=2, match="--all has no effect on logs; -d FOLDER names")
    act.run("files", "-d", "output", "--urls", run)  # as the help has it: also where the store is a folder
    act.fail("files", "nosuch", status=3, match="no run 'nosuch'")
    assert f"{run}:user_logs/" in act.run("files").out, "the run submitted last"


def test_urls_of_files_in_blob_storage(act, azure):
    config = json.loads(act.cluster("aml").read_text())
    config["config_param"]["data_folder"]["mode"] = "download"
    config["config_param"]["output_folder"]["mode"] = "upload"
    (act.project / "aux_data/aml/aml.yaml").write_text(json.dumps(config))
    azure.put("data/x", b"1")
    azure.put("output/old", b"1")
    run = act.finish("sh", "-c", "echo 12345 > output/y.txt", before=("-n", "1"))
    url, = [line for line in act.run("files", "-d", "output", "--urls", run).out.splitlines() if "y.txt" in line]
    with urllib.request.urlopen(url) as response:
        assert response.read() == b"12345\n"
    row = files_of(act, run, "-d", "output", "--urls", "--expires", "1h")["output/y.txt"]
    assert row["size"] == 6 and "sig=" in row["url"]
    assert "sig=" not in act.run("files", "-d", "output", run).out + act.run("files", "--json", run).out


# ---- a cat -f RUN:PATH


def test_cat_follows_a_log_that_is_not_there_yet(act):
    script = "echo one; while [ ! -e go ]; do sleep 0.1; done; echo two; exit 3"
    run = act.submit("sh", "-c", script, before=("-n", "1"))
    following = act.start("cat", "-f", f"{run}:{LOG}")
    act.until(lambda: LOG in act.run("ls", "-r", f"{run}:").out, "its log is there")
    code = next(act.home.rglob(f"{run}/**/code"))
    (code / "go").write_text("")
    out, err = following.communicate()
    assert out == b"one\ntwo\n" and following.returncode == 3 and b"a why" in err
    ended = act.run("cat", "-f", f"{run}:{LOG}", status=3)
    assert ended.out == "one\ntwo\n"


def test_cat_waits_for_what_never_comes(act):
    run = act.submit("sh", "-c", "while [ ! -e go ]; do sleep 0.1; done", before=("-n", "1"))
    following = act.start("cat", "-f", f"{run}:user_logs/model.txt")
    act.until_state(run, "Running")
    (next(act.home.rglob(f"{run}/**/code")) / "go").write_text("")
    out, err = following.communicate()
    assert following.returncode == 3 and out == b""
    assert f"run '{run}' is Completed and has no log 'user_logs/model.txt'".encode() in err


def test_cat_cannot_follow(act):
    run = act.finish("echo", "hello", before=("-n", "1"))
    act.fail("cat", "-f", f"{run}:none", status=3, match="has no log 'none'")
    act.fail("cat", "-f", f"{run}:user_logs", status=2, match="is a folder")
    act.fail("cat", "-f", f"{run}:", status=2, match="is a folder")
    act.fail("cat", "-f", f"{run}:{LOG}", f"{run}:{LOG}", status=2, match="-f follows one file, not 2")
    act.fail("cat", "-f", "--last", "10", f"{run}:{LOG}", status=2, match="--last does not go with it")
    act.fail("cat", "-f", "--memory", "64M", f"{run}:{LOG}", status=2, match="--memory does not go with it")
    act.write("data/a", b"1")
    act.run("u", "data")
    act.fail("cat", "-f", "data/a", status=2, match="follows a log of a run")


# ---- a q: exit status and tool of the runs of job files


def test_table_with_runs_of_job_files(act):
    act.finish("true", before=("-n", "1"))
    assert "EXIT" not in act.run("q").out
    job = {"properties": {"nodeCount": 1, "customToolkitSettings": {"commandLine": "exit 7"}}}
    act.write("job, two.json", json.dumps(job).encode())
    run = act.run("submit", "-f", "job, two.json").out.strip()
    act.run("wait", run, status=7)
    header, *rows = [line.split() for line in act.run("q").out.splitlines()]
    assert header[:4] == ["ID", "STATUS", "EXIT", "TOOL"]
    assert rows[0][:4] == [run, "Failed", "7", "customToolkit"] and rows[1][1:4] == ["Completed", "0", "-"]
    assert [r["tool"] for r in act.run("q", "--json").json["runs"]] == ["customToolkit", None]
    assert act.run("qf").out.splitlines()[0].split()[:4] == ["ID", "STATUS", "EXIT", "TOOL"]


# ---- a rm RUN:


@pytest.mark.smoke
def test_rm_of_a_run(act):
    gone, stays = (act.finish("echo", "hello", before=("-n", "1")) for _ in range(2))
    act.run("q", gone)
    piece = gone[-8:]
    dry = lines(act.run("rm", "--dry-run", "--json", f"{piece}:"))
    assert dry[0]["run"] == gone and dry[0]["action"] == "delete" and dry[0]["size"] > 0 and dry[0]["copies"] is True
    assert dry[1]["summary"] == "rm" and dry[1]["runs"] == 1 and dry[1]["objects"] == 0 and dry[1]["dry_run"] is True
    assert "would remove 1 run (1 with logs here)" in act.run("rm", "--dry-run", f"{piece}:").err
    asked = act.run("rm", f"{piece}:", status=2)
    assert gone in asked.out and "Remove 1 run (1 with logs here)" in asked.err and "add -y" in asked.err
    shown = act.on_terminal("rm", f"{piece}:", typed=b"n\n").decode()
    assert "with all logs, for good?" in shown and "nothing was changed" in shown
    assert act.run_dir(gone).exists() and (act.project / f"assets/{gone}").exists()
    assert "removed 1 run" in act.run("rm", "-y", f"{piece}:").err
    assert listed(act, "q") == [stays] and not list(act.home.rglob(gone))
    assert not (act.project / f"assets/{gone}").exists() and act.run_dir(stays).exists()
    act.fail("rm", "-y", f"{piece}:", status=3, match=f"there is no run '{piece}'")
    assert act.run("resubmit", stays).status == 0, "its package is there"
    act.run("wait", "@")


def test_rm_of_a_run_that_goes_on(act):
    ended, running = act.finish("true", before=("-n", "1")), act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(running, "Running")
    act.fail("rm", "-y", f"{running}:", status=2, match=f"is Running; 'a abort {running}' ends it")
    act.fail("rm", "-y", f"{ended}:", f"{running}:", match="nothing was removed", status=2)
    assert set(listed(act, "q")) == {ended, running} and act.run_dir(ended).exists()
    act.run("abort", running)
    last = lines(act.run("rm", "-y", "--json", f"{ended}:", "@:"))[-1]
    assert last["runs"] == 2 and last["errors"] == [] and listed(act, "q") == []
    assert list((act.home / "runs").iterdir()) == []


def test_rm_words_that_are_nearly_a_run(act):
    run = act.finish("true", before=("-n", "1"))
    piece = run[-8:]
    act.fail("rm", "-y", piece, status=3, match=f"'a rm {piece}:' removes the run")
    act.fail("rm", "-y", f"{piece}:{LOG}", status=2, match=f"as a whole, by 'a rm {piece}:'")
    act.fail("rm", "-y", "--leftovers", f"{piece}:", status=2, match="takes no '--leftovers' for .*, a run")
    act.fail("rm", "-y", "--include", "x", run, status=2, match="takes no '--include' for .*, a run")
    assert "matched nothing" not in act.run("rm", "-y", "--include", "x", run, status=2).err
    act.fail("rm", "-y", "nosuch:", status=3, match="there is no run 'nosuch'")
    act.write("data/a", b"1")
    act.run("u", "data")
    act.run("rm", "-y", "data")
    assert listed(act, "q") == [run] and act.run_dir(run).exists(), "a mapped path is no run"
    assert "removed 1 run" in act.run("rm", "-y", run).err and listed(act, "q") == []


def test_rm_of_a_run_whose_row_stays(act):
    """On a full disk what makes room is done all the same, and it is told what is left to do."""
    run = act.finish("true", before=("-n", "1"))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    result = act.run("rm", "-y", f"{run}:", status=8, preexec_fn=limit)
    assert "but for the row in the table of runs, as the ledger cannot be written: the same command" in result.err
    assert not list((act.home / "runs").iterdir()) and listed(act, "q") == [run]
    act.run("rm", "-y", f"{run}:")
    assert listed(act, "q") == []


def test_rm_of_a_path_that_is_named_like_a_run(act):
    act.cluster("both", folders=("data", "x:"))
    run = act.submit("true", before=("-c", "both", "-n", "1"))
    act.run("wait", run)
    act.run("submit", "--name", "x", "-n", "1", "true")
    act.run("wait", "@")
    act.fail("-c", "both", "rm", "-y", "x:", status=2, match="a mapped path or a run: './x:' is the path, '.*:' the r")
    assert len(listed(act, "q")) == 2
    named = listed(act, "q", "--name", "x")[0]
    assert "removed 1 run" in act.run("-c", "both", "rm", "-y", f"{named}:").err and listed(act, "q") == [run]


def test_rm_of_paths_and_runs(act):
    run = act.finish("true", before=("-n", "1"))
    act.write("data/a", b"1")
    act.run("u", "data")
    dry = lines(act.run("rm", "--dry-run", "--json", f"{run}:", "data"))
    assert [row.get("path") for row in dry] == ["data/a", None, None] and dry[1]["run"] == run
    last = lines(act.run("rm", "-y", "--json", f"{run}:", "data"))[-1]
    assert (last["runs"], last["objects"], last["failed"]) == (1, 1, 0)
    assert listed(act, "q") == [] and not list(act.store.rglob("a"))


def test_rm_of_a_run_whose_platform_does_not_have_it_any_more(act):
    run = act.finish("true", before=("-n", "1"))
    shutil.rmtree(act.run_dir(run))
    assert "removed 1 run" in act.run("rm", "-y", f"{run}:").err and listed(act, "q") == []


def test_rm_of_a_run_whose_cluster_is_gone(act, azureml):
    """What is left at the service is not forgotten without a word: only --force removes the rest. The rows are of a
    time when they did not say where their runs are."""
    run = act.run("submit", "true").out.strip()
    act.run("wait", run)
    act.run("q", run)
    other = act.run("submit", "sleep", "300").out.strip()
    with sqlite3.connect(act.home / "ledger.db") as ledger:
        ledger.execute("UPDATE runs SET place = NULL")
    ledger.close()
    (act.project / "aux_data/aml/aml.yaml").rename(act.project / "aux_data/aml/kept")
    act.cluster("lab", folders=("data",), extra={"platform": "local"})
    lab = {"env": {"ACT_CLUSTER": "lab"}}
    message = act.fail("rm", "-y", f"{run}:", status=None, match=f"'a rm --force {run}:' removes its row and its logs",
                       **lab)
    assert f"cannot remove run '{run}': " in message and "on cluster 'aml'" in message
    row, _ = lines(act.run("rm", "--dry-run", "--json", "--force", f"{run}:", **lab))
    assert "cluster 'aml'" in row["unreached"] and row["copies"] is True and row["size"] > 0
    assert "what is left there stays" in act.run("rm", "--force", f"{run}:", status=2, **lab).err
    assert (act.project / f"assets/{run}").exists()
    said = act.run("rm", "-y", "--force", f"{run}:", f"{other}:", **lab).err
    assert f"of run '{run}' stays what is left of it where it ran: " in said and "removed 2 runs" in said
    assert f"of run '{other}' stays what there is of it where it ran, or still runs: " in said
    assert listed(act, "-c", "lab", "q") == [] and not (act.project / f"assets/{run}").exists()
    act.fail("rm", "-y", "--force", "data", status=2, match="--force is about runs, and 'data' is a path", **lab)
    (act.project / "aux_data/aml/kept").rename(act.project / "aux_data/aml/aml.yaml")
    act.run("abort", other)


def test_rm_of_a_run_of_this_machine_needs_no_cluster_file(act):
    file = act.cluster("lab", folders=("data",), extra={"platform": "local"})
    run = act.finish("true", before=("-c", "lab", "-n", "1"))
    folder = act.run_dir(run)
    file.unlink()
    assert "removed 1 run" in act.run("rm", "-y", f"{run}:").err and not folder.exists()


def test_rm_of_a_run_of_slurm(lab):
    act = lab.act
    runs = [lab.submit("true") for _ in range(2)]
    act.run("wait", *runs)
    lab.until_over(runs[0])
    assert "removed 1 run" in act.run("rm", "-y", f"{runs[0]}:").err
    assert not lab.run_dir(runs[0]).exists() and lab.run_dir(runs[1]).exists() and listed(act, "q") == [runs[1]]


def test_rm_of_a_run_of_azure_machine_learning(act, azureml):
    runs = [act.run("submit", "true").out.strip() for _ in range(2)]
    act.run("wait", *runs)
    assert "removed 1 run" in act.run("rm", "-y", f"{runs[0]}:").err
    deleted = [r["url"].split("/jobs/")[1].split("?")[0] for r in azureml.requests() if r["method"] == "DELETE"]
    assert deleted == runs[:1] and listed(act, "q") == runs[1:]


def test_rm_of_a_run_on_kubernetes(act, kubernetes):
    runs = [act.run(*K8S, "submit", "true").out.strip() for _ in range(2)]
    act.run("wait", *runs)
    assert "removed 1 run" in act.run(*K8S, "rm", "-y", f"{runs[0]}:").err
    assert listed(act, *K8S, "q") == runs[1:] and len(kubernetes.objects("Job")) == 1


# ---- elsewhere


def look_at(act, run):
    """What is the same everywhere: a run that printed one line is followed to its end, and its logs are listed."""
    assert act.run("cat", "-f", f"{run}:{LOG}").out == "hello\n"
    files = files_of(act, run)
    assert [path.split(":")[1] for path in files] == act.run("ls", "-r", f"{run}:").out.splitlines()
    assert files[f"{run}:{LOG}"]["size"] == len("hello\n") and files[f"{run}:{LOG}"]["url"] is None


def test_files_of_a_run_of_slurm(lab):
    look_at(lab.act, lab.submit("echo", "hello"))


def test_files_of_a_run_of_azure_machine_learning(act, azureml):
    azureml.cluster(azureml={"settle_seconds": 0})
    look_at(act, act.run("submit", "echo", "hello").out.strip())


def test_files_of_a_run_on_kubernetes(act, kubernetes):
    run = act.run(*K8S, "submit", "echo", "hello").out.strip()
    look_at(act, run)


def test_interrupt_of_cat_leaves_the_run(act):
    run = act.submit("sh", "-c", "echo one; sleep 300", before=("-n", "1"))
    following = act.start("cat", "-f", f"{run}:{LOG}")
    assert following.stdout.readline() == b"one\n"
    following.send_signal(signal.SIGINT)
    err = following.communicate()[1]
    assert following.returncode == 130 and f"'a logs -f {run}' follows it again".encode() in err
    assert act.state(run) == "Running"
    act.run("abort", run)
