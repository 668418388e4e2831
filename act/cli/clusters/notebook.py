# What 'a notebook' has a node run: Jupyter in the environment of the project, at the socket that the keeper made room
# for. Its words are made here and not on a command line, which other users of the node could read.
import importlib.util
import os
import runpy
import shutil
import sys

NONE, OLD = 86, 87  # as notebook.c knows them


def have(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


idle, socket = sys.argv[1], os.environ["ACT_SERVICE_SOCKET"]
sys.path = [path for path in sys.path if path]  # a notebook.py of the project is not Jupyter
name = next(filter(have, ("jupyterlab", "notebook", "jupyter_server")), None)
if not name:
    other = shutil.which("jupyter")
    print("act: %s has none of jupyterlab, notebook and jupyter_server%s"
          % (sys.executable, "; the Jupyter of %s is another Python's" % other if other else ""), flush=True)
    sys.exit(NONE)
is_classic = have("notebook.notebookapp") and (name == "notebook" or not have("jupyter_server"))
if is_classic:
    from notebook.notebookapp import NotebookApp as App
else:
    from jupyter_server.serverapp import ServerApp as App
if "sock" not in App.class_trait_names():
    print("act: Jupyter is too old: it cannot listen at a Unix socket", flush=True)
    sys.exit(OLD)
app, interval = App.__name__, str(min(60, max(1, int(idle) // 2)))
own = {
    # The port and the address have to be what they are by default, whatever the user's own files say.
    app: {"sock": socket, "port": "8888", "ip": "localhost", "token": os.environ["ACT_SERVICE_TOKEN"], "password": "",
          "open_browser": "False", "allow_root": "True", "shutdown_no_activity_timeout": idle},
    "MappingKernelManager": {"cull_idle_timeout": idle, "cull_interval": interval, "cull_connected": "True"},
    "TerminalManager": {"cull_inactive_timeout": idle, "cull_interval": interval},
}
sys.argv = [name] + ["--%s.%s=%s" % (part, key, own[part][key]) for part in own for key in own[part]]
os.environ["JUPYTER_RUNTIME_DIR"] = os.path.join(os.path.dirname(socket), "runtime")
del os.environ["ACT_SERVICE_TOKEN"], os.environ["ACT_SERVICE_SOCKET"]
runpy.run_module(name, run_name="__main__", alter_sys=True)
