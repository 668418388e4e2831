"""An HTTP proxy that stands before a service and breaks what it is told to break.

A rule is asked for every request, in order; the first that wants it decides what happens to it:

    proxy.add(answer(503, times=2, headers={"Retry-After": "0"}))
    proxy.add(cut("answer", method="GET"))
"""
import http.client
import re
import socket
import socketserver
import struct
import threading


class Rule:
    def __init__(self, act, method=None, path="", times=1, skip=0):
        self.act, self.method, self.path, self.times, self.skip = act, method, path, times, skip
        self.hits = 0

    def wants(self, method, path):
        if self.times is not None and self.hits >= self.times + self.skip:
            return False
        if self.method not in (None, method) or not re.search(self.path, path):
            return False
        self.hits += 1
        return self.hits > self.skip


def answer(status, code="Injected", headers=(), **rule):
    """Answers by itself, as the service would when it fails."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>made up\nRequestId:1</Message></Error>'

    def act(exchange):
        exchange.reply(status, {"Content-Type": "application/xml", "x-ms-error-code": code,
                                "x-ms-request-id": "injected-request-id", **dict(headers)}, body.encode())
    return Rule(act, **rule)


def cut(when, **rule):
    """Resets the connection: before the 'request' is passed on, once the 'headers' of the answer were sent, in the
    middle of its 'body', or instead of any 'answer' though the service did what it was asked."""
    def act(exchange):
        if when != "request":
            status, headers, body = exchange.forward()
            if when == "headers":
                exchange.send_head(status, headers)
            elif when == "body":
                exchange.send_head(status, headers)
                exchange.send(body[: len(body) // 2])
        exchange.reset()
    return Rule(act, **rule)


def truncate(**rule):
    """Ends the answer early but in good order: fewer bytes than Content-Length says."""
    def act(exchange):
        status, headers, body = exchange.forward()
        exchange.send_head(status, headers)
        exchange.send(body[: len(body) // 2])
        exchange.keep = False
    return Rule(act, **rule)


def change_body(change, **rule):
    """Passes on an answer with another body, of the right length."""
    def act(exchange):
        status, headers, body = exchange.forward()
        exchange.reply(status, headers, change(body))
    return Rule(act, **rule)


class Exchange(socketserver.StreamRequestHandler):
    """One connection of a client."""

    def handle(self):
        self.keep, self.answered = True, False
        try:
            while self.keep and self.read_request():
                self.server.serve(self)
        except OSError:
            pass

    def read_request(self):
        self.answered = False
        first = self.rfile.readline().decode("latin-1").split()
        if len(first) != 3:
            return False
        self.method, self.path = first[0], first[1]
        self.headers = {}
        for line in iter(self.rfile.readline, b"\r\n"):
            if not line:
                return False
            name, _, value = line.decode("latin-1").partition(":")
            self.headers[name.strip()] = value.strip()
        lower = {k.lower(): v for k, v in self.headers.items()}
        if lower.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.body = self.rfile.read(int(lower.get("content-length", 0)))
        return True

    def forward(self):
        upstream = http.client.HTTPConnection(*self.server.upstream, timeout=300)
        try:
            upstream.putrequest(self.method, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("expect", "connection"):
                    upstream.putheader(name, value)
            upstream.endheaders(self.body)
            got = upstream.getresponse()
            body = got.read()
            drop = ("transfer-encoding", "connection", "keep-alive")
            headers = {k: v for k, v in got.getheaders() if k.lower() not in drop}
            if not any(k.lower() == "content-length" for k in headers):
                headers["Content-Length"] = str(len(body))
            return got.status, headers, body
        finally:
            upstream.close()

    def send_head(self, status, headers):
        head = f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unknown')}\r\n"
        self.send((head + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode("latin-1"))

    def reply(self, status, headers, body):
        if self.method != "HEAD":
            headers = {k: v for k, v in headers.items() if k.lower() != "content-length"}
            headers["Content-Length"] = str(len(body))
        self.send_head(status, headers)
        if self.method != "HEAD":
            self.send(body)

    def send(self, data):
        self.answered = True
        self.wfile.write(data)
        self.wfile.flush()

    def reset(self):
        self.keep = False
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class FaultProxy(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream, tls=None):
        super().__init__(("127.0.0.1", 0), Exchange)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.upstream, self.rules, self.seen, self.lock = upstream, [], [], threading.Lock()
        self.forgotten = []
        self.port = self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def add(self, rule):
        self.rules.append(rule)
        return rule

    def serve(self, exchange):
        with self.lock:
            self.seen.append((exchange.method, exchange.path))
            rule = next((r for r in self.rules if r.wants(exchange.method, exchange.path)), None)
        if rule:
            rule.act(exchange)
            if exchange.keep and not exchange.answered:
                self.forgotten.append((exchange.method, exchange.path))
        else:
            exchange.reply(*exchange.forward())

    def handle_error(self, request, client_address):
        pass  # broken connections are what this is about

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join()
        assert not self.forgotten, f"a rule left these without an answer, so they were sent again: {self.forgotten}"
