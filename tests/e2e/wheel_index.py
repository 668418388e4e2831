"""An index of packages on the loopback interface (the simple repository API, PEP 503), and small wheels for it."""
import base64
import hashlib
import html
import http.server
import io
import threading
import zipfile


def wheel(name, version="1.0", tag="py3-none-any", requires=(), requires_python=None):
    """The bytes of a wheel (binary distribution format): a module, which has VERSION, and a program that prints it."""
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": f"VERSION = {version!r}\n",
             f"{name}-{version}.data/scripts/{name}": f"#!python\nimport {name}\nprint({name}.VERSION)\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                                 + (f"Requires-Python: {requires_python}\n" if requires_python else "")
                                 + "".join(f"Requires-Dist: {one}\n" for one in requires),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"}
    record = "".join(f"{path},sha256={_digest(text.encode())},{len(text)}\n" for path, text in files.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(entry, text)
    return out.getvalue()


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class Index:
    """Serves what add() was given. asked: the paths that were asked for. held: file names that wait for release."""

    def __init__(self):
        self.files, self.pythons, self.asked, self.cut, self.held = {}, {}, [], set(), {}
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.answer(self)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple/"

    def close(self):
        for event in self.held.values():
            event.set()
        self.server.shutdown()
        self.server.server_close()

    def add(self, name, version="1.0", tag="py3-none-any", **more):
        """Offers a wheel, and returns its SHA-256."""
        data = wheel(name, version, tag, **more)
        self.files[f"{name}-{version}-{tag}.whl"] = data
        self.pythons[f"{name}-{version}-{tag}.whl"] = more.get("requires_python") or ""
        return hashlib.sha256(data).hexdigest()

    def hold(self, name):
        """Lets whoever asks for a file wait; returns the event that lets it go on."""
        self.held[name] = threading.Event()
        return self.held[name]

    def downloads(self, name):
        return sum(path.endswith(f"/{name}") for path in self.asked)

    def answer(self, request):
        self.asked.append(request.path)
        last = request.path.strip("/").split("/")[-1]
        if request.path.startswith("/simple/"):
            names = [file for file in self.files if file.split("-")[0] == last]
            data = "".join(f'<a href="/files/{file}" data-requires-python="{html.escape(self.pythons[file])}">'
                           f"{file}</a>\n" for file in names).encode()
            self.send(request, 200 if names else 404, data, "text/html")
        elif last in self.files:
            if last in self.held:
                self.held[last].wait()
            self.send(request, 200, self.files[last], "application/octet-stream", cut=last in self.cut)
        else:
            self.send(request, 404, b"", "text/plain")

    @staticmethod
    def send(request, status, data, kind, cut=False):
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data[:len(data) // 2] if cut else data)
