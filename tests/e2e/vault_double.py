"""A double of Azure Key Vault: it gives secrets to those who have a token of the double that issues them.

What it says follows learn.microsoft.com/rest/api/keyvault/secrets/get-secret and key-vault/general/rest-error-codes;
the official client reads it in test_keyvault.py."""
import base64
import hashlib
import hmac
import json
import re
import ssl
import urllib.parse

import threaded_server
from login_double import KEY, TENANT

AUDIENCE = "https://vault.azure.net"
VERSION = "4387e9f3d6e14c459867679a90fd0f79"


class VaultDouble(threaded_server.ThreadedServer):
    """secrets are {name: value}; those in disabled and forbidden are not given. log: the paths that were asked for with
    a good token; refused: why others were not."""

    def __init__(self, authority):
        self.secrets, self.disabled, self.forbidden, self.errors = {}, set(), set(), []
        self.attributes = {}  # of secrets, besides those that all have
        self.log, self.refused = [], []
        self.tenant = TENANT
        double = self

        class Handler(threaded_server.Handler):
            def do_GET(self):
                double.get(self)

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(authority.issue())
        self.serve(Handler, tls)

    def said(self, name, version=None):
        """What a file says in place of the secret."""
        return f"keyvault:{self.url}/secrets/{name}" + (f"/{version}" if version else "")

    def refusal(self, header):
        """Why a request has no good token; None: it has one."""
        head, body, signature = (header or "").removeprefix("Bearer ").split(".") if header else ("", "", "")
        wanted = hmac.new(KEY, f"{head}.{body}".encode(), hashlib.sha256).digest()
        if not header or base64.urlsafe_b64encode(wanted).rstrip(b"=").decode() != signature:
            return "AKV10000: Request is missing a Bearer or PoP token."
        claims = json.loads(base64.urlsafe_b64decode(body + "=="))
        if claims["aud"] != AUDIENCE:
            return f"AKV10022: Invalid audience. Expected {AUDIENCE}, found: {claims['aud']}."
        if claims["tid"] != self.tenant:
            return f"AKV10032: Invalid issuer. Expected {self.tenant}, found {claims['tid']}."
        return None

    def get(self, request):
        if self.errors:
            self.answer(request, *self.errors.pop(0))
            return
        why = self.refusal(request.headers.get("Authorization"))
        if why:
            self.refused.append(why)
            challenge = f'Bearer authorization="https://login.windows.net/{self.tenant}", resource="{AUDIENCE}"'
            self.answer(request, 401, {"error": {"code": "Unauthorized", "message": why}},
                        {"WWW-Authenticate": challenge})
            return
        self.log.append(request.path)
        path, _, query = request.path.partition("?")
        found = re.fullmatch(r"/secrets/([0-9a-zA-Z-]{1,127})(?:/([0-9a-f]{32})?)?", path)
        if not found or "api-version" not in dict(urllib.parse.parse_qsl(query)):
            self.answer(request, 400, {"error": {"code": "BadParameter", "message": "The request URI is invalid."}})
        else:
            self.give(request, found[1], found[2] or VERSION)

    def give(self, request, name, version):
        if name in self.forbidden:
            self.answer(request, 403, {"error": {
                "code": "Forbidden", "message": "Caller is not authorized to perform action on resource.\r\nIf role "
                "assignments, deny assignments or role definitions were changed recently, please observe propagation "
                "time.", "innererror": {"code": "ForbiddenByRbac"}}})
        elif name in self.disabled:
            self.answer(request, 403, {"error": {
                "code": "Forbidden", "message": "Operation get is not allowed on a disabled secret.",
                "innererror": {"code": "SecretDisabled"}}})
        elif name not in self.secrets or version != VERSION:
            self.answer(request, 404, {"error": {
                "code": "SecretNotFound", "message": f"A secret with (name/id) {name} was not found in this "
                "key vault."}})
        else:
            self.answer(request, 200, {
                "value": self.secrets[name], "id": f"{self.url}/secrets/{name}/{version}",
                "attributes": {"enabled": True, "created": 1493938410, "updated": 1493938410,
                               "recoveryLevel": "Recoverable+Purgeable", "recoverableDays": 90,
                               **self.attributes.get(name, {})}})

    @staticmethod
    def answer(request, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request.send_response(status)
        for key, value in {"Content-Type": "application/json; charset=utf-8", "Content-Length": str(len(data)),
                           "x-ms-keyvault-service-version": "1.9.2164.1", **dict(headers)}.items():
            request.send_header(key, value)
        request.end_headers()
        request.wfile.write(data)
