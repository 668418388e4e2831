"""An API server as far as TLS goes: makes its authority and certificates in the folder that it is given, says its port,
and tells whoever asks what it saw of the connection."""

import http.server
import json
import ssl
import subprocess
import sys
from pathlib import Path


def make(folder, name, *more):
    """<name>.crt and <name>.key, signed by the authority, or the authority itself."""
    by = ["-CA", folder / "ca.crt", "-CAkey", folder / "ca.key"] if name != "ca" else []
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]
    subprocess.run([*words, *by, *more], check=True, capture_output=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/stream":
            self.stream()
            return
        subject = dict(field[0] for field in self.connection.getpeercert().get("subject", ())) if self.is_tls() else {}
        body = json.dumps({"client": subject.get("commonName", ""), "port": self.client_address[1],
                           "host": self.headers["Host"], "name": getattr(self.connection, "name", ""),
                           "authorization": self.headers.get("Authorization", "")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_tls(self):
        return bool(self.connection.getpeercert())

    def stream(self):
        """A line, and then nothing until the client goes away."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"4\r\none\n\r\n")
        self.rfile.read(1)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context):
        super().__init__(("127.0.0.1", 0), Handler)
        self.context = context

    def get_request(self):
        plain, address = super().get_request()
        return self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_):
        """Clients that do not trust it go away."""


def main():
    folder = Path(sys.argv[1])
    make(folder, "ca", "-addext", "basicConstraints=critical,CA:TRUE")
    make(folder, "other", "-addext", "basicConstraints=critical,CA:TRUE")
    for name in ["server", "ann", "bob"]:
        names = ["-addext", "subjectAltName=DNS:cluster.test"] if name == "server" else []
        make(folder, name, "-addext", "basicConstraints=critical,CA:FALSE", *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.sni_callback = lambda connection, name, _: setattr(connection, "name", name)
    server = Server(context)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
