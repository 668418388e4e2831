"""What a job of Azure Machine Learning reads and writes: the datastores of the workspace that lead there."""
import datetime
import urllib.error
import urllib.parse
import urllib.request

import pytest

ACCOUNT = "aux_data/configs/store.yaml"


def rows(**folders):
    """config_param with the code and these folders; a path alone is short for {"path": path}."""
    params = {"code_path": {"azure_blob_config_file": ACCOUNT, "path": "files/code/project.zip"}}
    for name, row in folders.items():
        params[name if name == "code_path"
               else f"{name}_folder"] = {**params.get(name, {"azure_blob_config_file": ACCOUNT}),
                                                                     **row}
    return params


def store(azureml, act, container, **keys):
    """The account file again, with other keys."""
    service = azureml.service
    whole = {"account_name": service.account, "account_key": service.key, "container_name": container,
             "endpoint": service.endpoint, **keys}
    act.account("store", **{k: v for k, v in whole.items() if v is not None})


def finish(act, *words):
    return act.finish(*words, before=("-n", 1))


def asked(azureml, kind="datastores"):
    """The requests about datastores, as "<method> <name>"."""
    return [f"{r['method']} {r['url'].split('?')[0].split('/')[-1]}" for r in azureml.requests("arm")
            if f"/{kind}/" in r["url"]]


def datastore(azureml, name):
    return azureml.tell("objects")["datastores"][name]["properties"]


# ---- named by the user


def test_named_datastore_is_registered(act, azureml, container):
    azureml.service.put(f"{container}/files/data/a.txt", b"here")
    azureml.cluster(config_param=rows(data={"path": "files/data", "datastore_name": "my_data"}))
    run = finish(act, "cat", "data/a.txt")
    assert act.run("logs", run).out == "here"
    made = datastore(azureml, "my_data")
    assert made["containerName"] == container and made["credentials"]["secrets"]["key"] == azureml.service.key
    azureml.forget()
    finish(act, "true")
    assert [line for line in asked(azureml) if not line.startswith("GET")] == []


def test_datastore_name_at_the_top_is_for_rows_of_the_account_there(act, azureml, container):
    """A row that names its own account file has a datastore of its own, as in the original."""
    azureml.cluster(azure_blob_config_file=ACCOUNT, datastore_name="my_store", config_param={
        "code_path": "files/code/project.zip", "data_folder": {"path": "files/data"},
        "output_folder": {"azure_blob_config_file": ACCOUNT, "path": "files/output"}})
    run = finish(act, "sh", "-c", "echo done >output/x")
    assert azureml.service.get(f"{container}/files/output/x") == b"done\n"
    stores = set(azureml.tell("objects")["datastores"])
    assert "my_store" in stores and len(stores) == 2
    outputs = azureml.job(run)["properties"]["outputs"]
    assert sorted("my_store" in o["uri"] for o in outputs.values()) == [False, True]
    shown = act.run("config", "show").out
    assert shown.count("my_store") >= 2


def test_named_datastore_is_renewed_when_the_credential_changes(act, azureml, container):
    azureml.cluster(config_param=rows(code_path={"datastore_name": "mine"}))
    finish(act, "true")
    sas = azureml.service.container_sas(container)
    store(azureml, act, container, account_key=None, sas_token=sas)
    azureml.forget()
    finish(act, "true")
    assert "PUT mine" in asked(azureml)
    assert datastore(azureml, "mine")["credentials"] == {"credentialsType": "Sas",
                                                         "secrets": {"secretsType": "Sas", "sasToken": f"?{sas}"}}
    azureml.forget()
    finish(act, "true")
    assert "PUT mine" not in asked(azureml)


def test_login_leaves_the_credential_of_a_named_datastore(act, azureml, container):
    """The jobs of others may depend on it."""
    service = azureml.service
    row = {"path": "files/data", "datastore_name": "mine", "azure_blob_config_file": "aux_data/configs/data.yaml"}
    place = {"account_name": service.account, "container_name": container, "endpoint": service.endpoint}
    azureml.cluster(config_param=rows(data=row))
    act.account("data", **place, account_key=service.key)
    act.submit("true")
    act.account("data", **place)
    azureml.forget()
    act.submit("true")
    assert "GET mine" in asked(azureml) and "PUT mine" not in asked(azureml)


OTHERS = {"description": "by hand", "credentials": {"credentialsType": "AccountKey",
                                                    "secrets": {"secretsType": "AccountKey", "key": "b2xk"}}}


@pytest.mark.parametrize("kind, place", [("AzureBlob", "containerName"), ("AzureDataLakeGen2", "filesystem")])
def test_datastore_of_others_is_used_as_it_is(act, azureml, container, kind, place):
    account = azureml.service.account
    azureml.tell("object", kind="datastores", name="theirs",
                 properties={**OTHERS, "datastoreType": kind, "accountName": account, place: container})
    azureml.cluster(config_param=rows(data={"path": "files/data", "datastore_name": "theirs"}))
    act.submit("true")
    assert "PUT theirs" not in asked(azureml) and datastore(azureml, "theirs")["description"] == "by hand"


@pytest.mark.parametrize("other, said", [
    ({"accountName": "elsewhere"}, "the container '{0}' of the account 'elsewhere'"),
    ({"containerName": "wrong"}, "the container 'wrong' of the account '{1}'"),
    ({"datastoreType": "AzureFile", "fileShareName": "docs"}, "the share 'docs' of the account '{1}'"),
    ({"datastoreType": "AzureDataLakeGen1", "storeName": "x"}, "of the type 'AzureDataLakeGen1'"),
    ({"accountName": "elsewhere", "tags": {"act.credential": "0"}}, "the container '{0}' of the account 'elsewhere'")])
def test_datastore_that_leads_elsewhere(act, azureml, container, other, said):
    """It is nobody's to write over, even if an ACT made it once."""
    account = azureml.service.account
    azureml.tell("object", kind="datastores", name="theirs", properties={
        **OTHERS, "datastoreType": "AzureBlob", "accountName": account, "containerName": container, **other})
    azureml.cluster(config_param=rows(data={"path": "files/data", "datastore_name": "theirs"}))
    before = azureml.tell("objects")["datastores"]["theirs"]
    act.fail("submit", "true", status=7, match=f"'theirs' of the workspace is {said.format(container, account)}.*"
             f"has the container '{container}' of the account '{account}'.*datastore_name")
    assert azureml.tell("objects")["datastores"]["theirs"] == before and azureml.tell("jobs") == []


@pytest.mark.parametrize("name", ["a b", "../x", "_mine", "", "x" * 256])
def test_names_that_no_datastore_can_have(act, azureml, container, name):
    azureml.cluster(config_param=rows(data={"path": "files/data", "datastore_name": name}))
    act.fail("submit", "true", status=7, match="datastore_name of 'data'")
    assert azureml.requests() == [] and not azureml.service.list(container)


def test_datastore_that_somebody_makes_at_the_same_moment(act, azureml, container):
    azureml.cluster(config_param=rows(code_path={"datastore_name": "mine"}))
    conflict = {"status": 409, "json": {"error": {"code": "Conflict", "message": "It is being written."}}}
    azureml.faults({"method": "PUT", "match": "/datastores/mine", "answer": conflict})
    finish(act, "true")
    azureml.tell("reset")
    azureml.faults({"method": "PUT", "match": "/datastores/mine", "answer": conflict, "times": 2})
    act.fail("submit", "true", status=None, match="Conflict: It is being written")


def test_datastore_that_may_not_be_registered(act, azureml, container):
    azureml.cluster(config_param=rows(code_path={"datastore_name": "mine"}))
    azureml.faults({"method": "PUT", "match": "/datastores/",
                    "forbidden": "Microsoft.MachineLearningServices/workspaces/datastores/write"})
    act.fail("submit", "true", status=4, match="(?s)datastores/write.*datastore_name")


# ---- Azure Files


def share(**keys):
    return {"path": "team/x", "storage_type": "file", "file_share": "my-files", **keys}


def test_share_is_mounted(act, azureml, container):
    """In the double a container of its name stands for the share."""
    service = azureml.service
    files = f"files-{container}"
    service.create(files)
    service.put(f"{files}/team/x/a.txt", b"shared")
    azureml.cluster(config_param=rows(data=share(file_share=files, mode="ro_mount"), output=share(file_share=files),
                                      models=share(file_share=files, mode="download")))
    run = finish(act, "sh", "-c", "cat data/a.txt models/a.txt; echo new >output/b.txt")
    assert act.run("logs", run).out == "sharedshared"
    assert service.get(f"{files}/team/x/b.txt") == b"new\n"
    stores = azureml.tell("objects")["datastores"]
    name, = (name for name in stores if name.startswith(f"file_{service.account}_{files.replace('-', '_')}_"))
    assert stores[name]["properties"]["datastoreType"] == "AzureFile" and len(stores) == 2
    job = azureml.job(run)["properties"]
    assert sorted(i["mode"] for i in job["inputs"].values() if name in i["uri"]) == ["Download", "ReadOnlyMount"]
    assert [o["mode"] for o in job["outputs"].values()] == ["ReadWriteMount"]
    azureml.forget()
    finish(act, "true")
    assert [line for line in asked(azureml) if line.startswith("PUT")] == []


def test_share_by_sas_in_a_datastore_of_its_own_name(act, azureml, container):
    sas = azureml.service.account_sas()
    act.account("files", account_name=azureml.service.account, sas_token=sas, endpoint=azureml.service.endpoint)
    row = share(azure_blob_config_file="aux_data/configs/files.yaml", datastore_name="team_files")
    azureml.cluster(config_param=rows(data=row))
    act.submit("true")
    assert datastore(azureml, "team_files")["credentials"]["secrets"] == {"secretsType": "Sas", "sasToken": f"?{sas}"}


def test_share_needs_a_key_or_a_signature(act, azureml, container):
    act.account("files", account_name=azureml.service.account, endpoint=azureml.service.endpoint)
    azureml.cluster(config_param=rows(data=share(azure_blob_config_file="aux_data/configs/files.yaml")))
    act.fail("submit", "true", status=7, match="'data' is in a share of Azure Files.*files.yaml' has neither")
    assert azureml.requests() == [] and not azureml.service.list(container)


@pytest.mark.parametrize("words",
                         [("u", "data"), ("d", "data"), ("ls", "data"), ("rm", "-y", "data/a"), ("url", "data/a"),
                                   ("cat", "data/a")])
def test_data_verbs_on_a_share(act, azureml, container, words):
    act.write("data/a", "x")
    azureml.cluster(config_param=rows(data=share()))
    act.fail(*words, status=7, match="'file_endpoint' is missing.*share 'my-files'")
    assert not azureml.service.list(container)


def test_share_is_nothing_that_doctor_and_check_complain_of(act, azureml, container):
    act.account("files", account_name=azureml.service.account, account_key=azureml.service.key,
                endpoint=azureml.service.endpoint)
    azureml.cluster(config_param=rows(data=share(azure_blob_config_file="aux_data/configs/files.yaml")))
    for words in (("config", "check"), ("doctor",)):
        said = act.run(*words)
        assert "files.yaml" not in said.err and "warning" not in said.err, said


@pytest.mark.parametrize("platform", ["local", "slurm"])
def test_share_on_other_platforms(act, azureml, container, platform):
    azureml.cluster(name="other", platform=platform, docker={"image": None},
                    config_param=rows(data=share()))
    act.fail("-c", "other", "submit", "true", status=7,
             match="'data' is in a share of Azure Files.*my-files.*mode: download")
    assert not azureml.service.list(container)


# ---- URLs instead of a datastore


def with_url(**folders):
    return rows(code_path={"submit_with_url": True}, **folders)


def files_of(job):
    """The URLs of the inputs that are files, taken apart."""
    return {name: urllib.parse.urlsplit(i["uri"]) for name,
            i in job["inputs"].items() if i["jobInputType"] == "uri_file"}


def test_code_by_url(act, azureml, container):
    """Each URL reads one file for a week, and nothing else."""
    act.write("code.txt", "the code")
    azureml.cluster(config_param=with_url())
    result = act.run("-n", 1, "submit", "cat", "code.txt", env={"ACT_TRACE": "all"})
    run = result.out.split()[-1]
    act.run("wait", run)
    assert act.run("logs", run).out == "the code"
    assert asked(azureml) == []
    urls = files_of(azureml.job(run)["properties"])
    assert sorted(urls) == ["act_agent", "act_code", "act_run"]
    for url in urls.values():
        query = dict(urllib.parse.parse_qsl(url.query))
        assert query["sp"] == "r" and query["sr"] == "b"
        end = datetime.datetime.fromisoformat(query["se"].replace("Z", "+00:00"))
        left = end - datetime.datetime.now(datetime.timezone.utc)
        assert datetime.timedelta(days=6) < left < datetime.timedelta(days=8)
        assert query["sig"][:8] not in result.err and url.query.split("sig=")[1][:8] not in result.err
    other = urls["act_run"]._replace(query=urls["act_agent"].query)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(other.geturl(), timeout=300)
    for words in (("q", run, "--json"), ("config", "show")):
        assert "sig=" not in act.run(*words).out
    for file in act.home.rglob("*"):
        assert not file.is_file() or b"sig=" not in file.read_bytes(), file


def test_run_that_is_repeated_has_urls_too(act, azureml, container):
    azureml.cluster(config_param=with_url())
    run = finish(act, "true")
    again = act.run("resubmit", run).out.split()[-1]
    act.run("wait", again)
    old, new = (files_of(azureml.job(r)["properties"])["act_code"] for r in (run, again))
    assert old.path == new.path


def test_lost_job_is_found_with_the_urls_of_before(act, azureml, container):
    """The same command again signs other URLs for the job that is there already."""
    azureml.cluster(config_param=with_url())
    down = {"status": 503, "body": ""}
    azureml.faults({"method": "PUT", "match": "/jobs/", "cut": "after"},
                   {"match": "/jobs/", "times": 1000, "answer": down})
    act.fail("-n", 1, "submit", "echo", "once", status=5, env={"ACT_MAX_RETRIES": "1"}, match="the same command again")
    made, = azureml.tell("jobs")
    azureml.faults()
    assert finish(act, "echo", "once") == made["name"] and len(azureml.tell("jobs")) == 1


def test_signature_in_an_error_is_masked(act, azureml, container):
    azureml.cluster(config_param=with_url())
    azureml.tell("hold", status="Preparing")
    run = act.submit("true")
    job = azureml.job(run)["properties"]
    azureml.service.delete(urllib.parse.unquote(files_of(job)["act_run"].path.split(azureml.service.account + "/")[-1]))
    azureml.tell("release")
    act.run("wait", run, status=None)
    assert "sig=" in azureml.job(run)["error"]["error"]["message"]
    for words in (("q", run), ("q", run, "--json"), ("why", run)):
        shown = act.run(*words, status=None)
        assert "404" in shown.out and "sig=REDACTED" in shown.out, words
        assert job["inputs"]["act_run"]["uri"].split("sig=")[1][:8] not in shown.out + shown.err, words


def test_folders_are_mounted_all_the_same(act, azureml, container):
    azureml.service.put(f"{container}/files/data/a.txt", b"here")
    azureml.cluster(config_param=with_url(data={"path": "files/data", "submit_with_url": True},
                                          output={"path": "files/output", "submit_with_url": True}))
    result = act.run("-n", 1, "submit", "cat", "data/a.txt")
    assert "blob_cache_timeout" not in result.err
    assert result.err.count("'submit_with_url' is for 'code_path' only: 'data' is mounted") == 1
    run = result.out.split()[-1]
    act.run("wait", run)
    assert act.run("logs", run).out == "here"


def test_setting_of_mounts_that_is_gone(act, azureml, container):
    azureml.cluster(config_param=rows(**{name: {"path": name, "blob_cache_timeout": 60}
                                         for name in ("data", "output")}))
    result = act.run("-n", 1, "submit", "true")
    assert result.err.count("'blob_cache_timeout' of 'data' has no effect") == 1 and "'output' has" not in result.err


@pytest.mark.parametrize("auth", ["sas", "anonymous"])
def test_url_that_would_give_more_than_a_file(act, azureml, container, auth):
    sas = {"sas_token": azureml.service.container_sas(container)} if auth == "sas" else {}
    store(azureml, act, container, account_key=None, auth=auth, **sas)
    azureml.cluster(config_param=with_url())
    act.fail("submit", "true", status=7, match="'submit_with_url' of 'code_path' needs an 'account_key'.*or a login")
    assert azureml.requests() == [] and not azureml.service.list(container)


# ---- the files of a run


def stored(azureml, container):
    """Keys and ETags of what the code's store has."""
    return {key: azureml.service.head(f"{container}/{key}")["etag"]
            for key in azureml.service.list(container, "files/code")}


def test_second_submit_stores_nothing_but_its_run(act, azureml, container):
    act.submit("true")
    before = stored(azureml, container)
    result = act.run("-n", 1, "submit", "true", env={"ACT_TRACE": "http"})
    after = stored(azureml, container)
    assert set(after) - set(before) == {f"files/code/project/runs/{result.out.split()[-1]}.json"}
    assert {key: after[key] for key in before} == before
    asks = [line.split()[2] for line in result.err.splitlines() if f"/{container}/" in line and " http: " in line]
    assert asks.count("PUT") == 1 and len(asks) <= 6, result.err


def test_submits_at_the_same_time(act, azureml, container):
    """Nobody has packed or stored anything before: each finds or makes what all of them need, once."""
    act.write("code.txt", "the code")
    started = [act.start("-n", "1", "submit", "cat", "code.txt")
               for _ in range(4)]
    said = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 4, said
    runs = [out.decode().split()[-1] for out, _ in said]
    assert len(set(runs)) == 4
    for run in runs:
        act.run("wait", run)
        assert act.run("logs", run).out == "the code"
    keys = list(stored(azureml, container))
    assert len([key for key in keys if "/bin/" in key]) == 1
    assert len([key for key in keys if key.endswith(".zip") and "/project/" in key]) == 1
    assert sorted(key.split("/")[-1] for key in keys if "/runs/" in key) == sorted(f"{run}.json" for run in runs)
