"""A double of what issues tokens: Microsoft Entra's endpoints, the identity endpoints of App Service, AzureML and
virtual machines, and the program az.

Its tokens are JSON web tokens, signed with a key that the double of the Blob service knows too. What goes wrong is said
by attributes; `log` holds what was asked, and `secrets` everything that must not be seen anywhere else."""
import base64
import collections
import hashlib
import hmac
import json
import os
import pathlib
import threading
import time
import urllib.parse
import uuid

import threaded_server

TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
OTHER_TENANT = "11111111-2222-3333-4444-555555555555"
CLIENT = "aaaaaaaa-0000-4000-8000-000000000001"
KEY = os.urandom(32)
RESOURCE = "https://storage.azure.com"
TOKEN_PATH = "/metadata/identity/oauth2/token"

Asked = collections.namedtuple("Asked", "kind tenant form headers")


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class LoginDouble(threaded_server.ThreadedServer):
    def __init__(self):
        self.log, self.secrets, self.lock = [], set(), threading.Lock()
        self.life = 3600            # seconds of new tokens
        self.clock = 0              # what its clock is ahead of that of this machine, in seconds
        self.tenant = TENANT        # that tokens are of, unless the request names one
        self.claims = {}            # more claims of new tokens
        self.delay = 0              # seconds before a token comes
        self.errors = []            # (status, body) of the next answers, of a token endpoint or an identity
        self.identity_errors = []
        self.probe_errors = []
        self.client_secret, self.identity_header = "s3cret+/&=" + uuid.uuid4().hex, uuid.uuid4().hex
        self.assertion = "assertion." + uuid.uuid4().hex
        self.refresh_token = "1.refresh-" + uuid.uuid4().hex
        self.imds = True            # there is a metadata service
        self.numbers_as_text = True
        self.device = []            # errors while polling; then the token
        self.interval = 1
        self.secrets |= {self.client_secret, urllib.parse.quote_plus(self.client_secret), self.identity_header,
                         self.assertion, self.refresh_token, "DEVICECODE" + self.refresh_token}
        double = self

        class Handler(threaded_server.Handler):
            def date_time_string(self, timestamp=None):
                return super().date_time_string(double.now() if timestamp is None else timestamp)

            def do_GET(self):
                double.identity(self)

            def do_POST(self):
                double.entra(self)

        self.serve(Handler)

    def now(self):
        return int(time.time()) + self.clock

    # ---- tokens

    def token(self, audience=RESOURCE, tenant=None, **claims):
        now = self.now()
        body = {"aud": audience, "iss": f"https://sts.windows.net/{tenant or self.tenant}/",
                "tid": tenant or self.tenant, "oid": str(uuid.uuid4()), "nbf": now - 5, "iat": now,
                "exp": now + self.life, **self.claims, **claims}
        text = ".".join(encode(json.dumps(part, separators=(",", ":")).encode())
                        for part in ({"alg": "HS256", "typ": "JWT"}, body))
        token = text + "." + encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest())
        with self.lock:
            self.secrets.add(token)
        return token

    def asked(self, kind=None):
        with self.lock:
            return [row for row in self.log if kind in (None, row.kind)]

    def note(self, *row):
        with self.lock:
            self.log.append(Asked(*row))

    @staticmethod
    def take(rows):
        return rows.pop(0) if rows else None

    @staticmethod
    def answer(request, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        for name, value in dict(headers).items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)

    def refuse(self, request, error, text, status=400):
        self.answer(request, status, {
            "error": error, "error_description": f"{text}\r\nTrace ID: 0\r\nCorrelation ID: c0", "error_codes": [7000],
            "correlation_id": "c0ffee00-0000-4000-8000-000000000000"})

    # ---- Entra

    def entra(self, request):
        form = dict(urllib.parse.parse_qsl(request.rfile.read(int(request.headers["Content-Length"])).decode()))
        _, tenant, *rest = request.path.split("/")
        kind = rest[-1]
        self.note(kind, tenant, form, dict(request.headers))
        error = self.take(self.errors)
        if error:
            self.answer(request, *error)
        elif tenant not in (TENANT, OTHER_TENANT, "organizations"):
            self.refuse(request, "invalid_request", f"AADSTS90002: Tenant '{tenant}' not found.")
        elif kind == "devicecode":
            self.answer(request, 200, {
                "user_code": "ABCD-EFGH", "device_code": "DEVICECODE" + self.refresh_token,
                "verification_uri": "https://microsoft.com/devicelogin", "expires_in": 900, "interval": self.interval,
                "message": "To sign in, open https://microsoft.com/devicelogin and enter the code ABCD-EFGH"})
        else:
            self.grant(request, None if tenant == "organizations" else tenant, form)

    def grant(self, request, tenant, form):
        kind = form.get("grant_type")
        if kind == "client_credentials" and "client_secret" in form:
            fine = form["client_secret"] == self.client_secret
            error = ("invalid_client", "AADSTS7000215: Invalid client secret provided.", 401)
        elif kind == "client_credentials":
            fine = (form.get("client_assertion") == self.assertion and form.get("client_assertion_type")
                    == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            error = ("invalid_client", "AADSTS700212: No matching federated identity record found.", 401)
        elif kind == "refresh_token":
            fine = form["refresh_token"] == self.refresh_token
            error = ("invalid_grant", "AADSTS70043: The refresh token has expired.")
        else:
            state = self.take(self.device)
            assert kind == "urn:ietf:params:oauth:grant-type:device_code", form
            fine = not state and form["device_code"] == "DEVICECODE" + self.refresh_token
            error = state, "AADSTS70016: x"
        if not fine:
            self.refuse(request, *error)
            return
        time.sleep(self.delay)
        who = {"upn": "ann@contoso.com"} if kind != "client_credentials" else {"appid": form["client_id"]}
        scope = form.get("scope", RESOURCE + "/.default").split(" ")[0]
        answer = {"token_type": "Bearer", "expires_in": self.life, "ext_expires_in": self.life,
                  "access_token": self.token(scope.removesuffix("/.default"), tenant, **who)}
        if kind != "client_credentials":
            self.refresh_token = "1.refresh-" + uuid.uuid4().hex  # each is good for once
            self.secrets.add(self.refresh_token)
            answer["refresh_token"] = self.refresh_token
        self.answer(request, 200, answer)

    # ---- identities of machines

    def identity(self, request):
        path, _, query = request.path.partition("?")
        form = dict(urllib.parse.parse_qsl(query))
        headers = {k.lower(): v for k, v in request.headers.items()}
        probe = path == TOKEN_PATH and "metadata" not in headers
        kind = {"/app": "app", "/azureml": "azureml", TOKEN_PATH: "imds"}.get(path)
        self.note("probe" if probe else kind, None, form, headers)
        error = self.take(self.probe_errors if probe else self.identity_errors)
        if error:
            self.answer(request, *error)
            return
        fine = {"app": headers.get("x-identity-header") == self.identity_header
                and form.get("api-version") == "2019-08-01",
                "azureml": headers.get("secret") == self.identity_header and form.get("api-version") == "2017-09-01",
                "imds": self.imds and headers.get("metadata") == "true" and form.get("api-version") == "2018-02-01"}
        if not fine.get(kind) or form.get("resource") != RESOURCE:
            self.answer(request, 400, {"error": "invalid_request", "error_description": "Required metadata header "
                                       "not specified or not correct"})
            return
        time.sleep(self.delay)
        until, text = self.now() + self.life, str if self.numbers_as_text else int
        self.answer(request, 200, {
            "access_token": self.token(appid=form.get("client_id") or form.get("clientid") or CLIENT),
            "refresh_token": "", "expires_in": text(self.life), "expires_on": text(until),
            "not_before": text(until - self.life), "resource": RESOURCE, "token_type": "Bearer"})

    # ---- settings for ACT

    def authority(self):
        return {"AZURE_AUTHORITY_HOST": self.url}

    def principal(self, tenant=TENANT):
        return {**self.authority(), "AZURE_TENANT_ID": tenant, "AZURE_CLIENT_ID": CLIENT,
                "AZURE_CLIENT_SECRET": self.client_secret}

    def federated(self, folder):
        path = pathlib.Path(folder) / "assertion"
        path.write_text(self.assertion + "\n")
        return {**self.authority(), "AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT,
                "AZURE_FEDERATED_TOKEN_FILE": str(path)}

    def app_service(self):
        return {"IDENTITY_ENDPOINT": self.url + "/app", "IDENTITY_HEADER": self.identity_header}

    def azureml(self):
        return {"MSI_ENDPOINT": self.url + "/azureml", "MSI_SECRET": self.identity_header,
                "DEFAULT_IDENTITY_CLIENT_ID": CLIENT}

    def machine(self):
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": self.url}


class AzDouble:
    """A program 'az' in a folder of its own, which prints what it was given and counts how often it ran."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "az-bin"
        self.folder.mkdir()
        self.calls = self.folder / "calls"

    def says(self, out="", err="", status=0, seconds=0):
        (self.folder / "out").write_text(out)
        (self.folder / "err").write_text(err)
        script = self.folder / "az"
        script.write_text(f"#!/bin/sh\necho \"$PWD $*\" >> '{self.calls}'\nsleep {seconds}\n"
                          f"cat '{self.folder}/err' >&2\ncat '{self.folder}/out'\nexit {status}\n")
        script.chmod(0o755)
        return self

    def gives(self, token, life=3600, form="new", tenant=TENANT):
        """life: seconds from now on, by the clock of this machine."""
        until = int(time.time()) + life
        answer = {"accessToken": token, "subscription": str(uuid.UUID(int=0)), "tenant": tenant, "tokenType": "Bearer",
                  "expiresOn": time.strftime("%Y-%m-%d %H:%M:%S.000000", time.localtime(until))}
        if form != "old":
            answer["expires_on"] = until if form == "new" else str(until)
        return self.says(json.dumps(answer, indent=2))

    def asked(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []
