"""A small client of the Blob service's REST interface, which shares nothing with ACT: the tests look from the other
side, and put things into the service that ACT would never write."""
import base64
import datetime
import email.utils
import hashlib
import hmac
import http.client
import urllib.parse
import xml.etree.ElementTree as ET

VERSION = "2021-12-02"


class BlobService:
    """An account at host:port in path style, as emulators have it; with an authority over TLS, and `ca` is its file."""
    kind = "container"  # what an account has, as the service calls it
    letter, permissions = "b", "rwdlac"  # of the service, and all of it, in a SAS of the account
    azcopy = "Blob"     # as azcopy does

    def __init__(self, port, account, key, authority=None):
        self.port, self.account, self.key, self.authority = port, account, key, authority
        self.context, self.ca = (authority.context(), authority.file) if authority else (None, None)
        self.endpoint = f"{'https' if authority else 'http'}://127.0.0.1:{port}/{account}"

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=300, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def sign(self, text):
        mac = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256)
        return base64.b64encode(mac.digest()).decode()

    def request(self, method, path, query=(), headers=(), body=b"", expect=(200, 201, 202)):
        """path is 'container' or 'container/key', not encoded."""
        query, headers = dict(query), {k.lower(): v for k, v in dict(headers).items()}
        headers["x-ms-date"] = email.utils.formatdate(usegmt=True)
        headers["x-ms-version"] = VERSION
        url = f"/{self.account}/" + urllib.parse.quote(path)
        standard = [str(len(body)) if body else "", headers.get("content-md5", ""), headers.get("content-type", "")]
        extra = "".join(f"{k}:{v}\n" for k, v in sorted(headers.items()) if k.startswith("x-ms-"))
        resource = f"/{self.account}{url}" + "".join(f"\n{k}:{v}" for k, v in sorted(query.items()))
        text = "\n".join([method, "", "", *standard, "", "", "", "", "", headers.get("range", "")]) + "\n"
        headers["authorization"] = f"SharedKey {self.account}:{self.sign(text + extra + resource)}"
        connection = self.connect()
        try:
            full = url + ("?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote) if query else "")
            connection.request(method, full, body, {**headers, "content-length": str(len(body))})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if expect is not None:
            assert answer.status in expect, (method, path, answer.status, data[:1000])
        return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), data

    # ---- containers and blobs

    def create(self, container):
        self.request("PUT", container, {"restype": self.kind})

    def remove(self, container):
        """If it is there."""
        self.request("DELETE", container, {"restype": self.kind}, expect=None)

    def account_keys(self, container):
        """What an account file says of it."""
        return {"account_name": self.account, "account_key": self.key, "container_name": container,
                "endpoint": self.endpoint}

    def folder_keys(self, container):
        """What a cluster file says of a folder in it, beside its account and its path."""
        return {}

    def sas(self, container, hours=1):
        """A signature for all that is in it."""
        return self.container_sas(container, hours=hours)

    def put(self, path, data=b"", headers=()):
        self.request("PUT", path, headers={"x-ms-blob-type": "BlockBlob", **dict(headers)}, body=data)

    def get(self, path):
        return self.request("GET", path)[2]

    def head(self, path):
        return self.request("HEAD", path)[1]

    def exists(self, path):
        return self.request("HEAD", path, expect=(200, 404))[0] == 200

    def delete(self, path):
        self.request("DELETE", path)

    def list(self, container, prefix=""):
        """{key: size} of all blobs below a prefix."""
        found, marker = {}, ""
        while True:
            query = {"restype": "container", "comp": "list", "prefix": prefix, "marker": marker}
            page = ET.fromstring(self.request("GET", container, {k: v for k, v in query.items() if v})[2])
            for blob in page.iter("Blob"):
                found[blob.findtext("Name")] = int(blob.findtext("Properties/Content-Length"))
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return found

    # ---- shared access signatures, as queries without '?'

    def container_sas(self, container, permissions="racwdl", hours=1):
        expiry = utc(hours)
        text = "\n".join([permissions, "", expiry, f"/blob/{self.account}/{container}", "", "", "", VERSION, "c",
                          "", "", "", "", "", "", ""])
        return urllib.parse.urlencode(
            {"sv": VERSION, "se": expiry, "sr": "c", "sp": permissions, "sig": self.sign(text)})

    def account_sas(self, permissions=None, hours=1):
        permissions, expiry = permissions or self.permissions, utc(hours)
        text = "\n".join([self.account, permissions, self.letter, "sco", "", expiry, "", "", VERSION, "", ""])
        return urllib.parse.urlencode({"sv": VERSION, "ss": self.letter, "srt": "sco", "se": expiry, "sp": permissions,
                                       "sig": self.sign(text)})


def utc(hours):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
