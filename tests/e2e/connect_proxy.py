"""A proxy for HTTPS: it opens tunnels to hosts that it knows by name, to servers of this machine, and keeps what it
saw."""
import base64
import select
import socket
import socketserver
import threading


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        method, target, _ = self.rfile.readline().decode().split()
        headers = dict(line.decode().strip().split(": ", 1) for line in iter(self.rfile.readline, b"\r\n"))
        proxy = self.server
        proxy.seen.append((method, target))
        wanted = proxy.login and "Basic " + base64.b64encode(proxy.login.encode()).decode()
        if wanted and headers.get("Proxy-Authorization") != wanted:
            self.refuse("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"proxy\"\r\n")
        elif proxy.status or method != "CONNECT" or target not in proxy.hosts:
            self.refuse(proxy.status or "403 Forbidden")
        else:
            with socket.create_connection(proxy.hosts[target]) as upstream:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self.tunnel(upstream)

    def refuse(self, status, more=""):
        self.wfile.write(f"HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def tunnel(self, upstream):
        ends = {self.connection: upstream, upstream: self.connection}
        while True:
            for end in select.select(list(ends), [], [])[0]:
                data = end.recv(65536)
                if not data:
                    return
                self.server.bytes += data
                ends[end].sendall(data)


class ConnectProxy(socketserver.ThreadingTCPServer):
    """login: "user:password" that it wants; status: what it answers instead of a tunnel."""
    daemon_threads = True

    def __init__(self, hosts):
        super().__init__(("127.0.0.1", 0), Client)
        self.hosts, self.login, self.status, self.seen, self.bytes = hosts, None, None, [], bytearray()
        self.port = self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def handle_error(self, request, client_address):
        pass  # clients go away

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join()
