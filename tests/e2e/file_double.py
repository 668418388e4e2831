"""The test double of the File service (tests/blobserver --files), and a small client of its REST interface, which
shares nothing with ACT."""
import hashlib
import base64
import urllib.parse
import xml.etree.ElementTree as ET

import blob_service
from blob_double import BlobDouble
from blob_service import utc

RANGE = 4 << 20
VERSION = blob_service.VERSION


class FileDouble(BlobDouble):
    """Paths are 'share/directory/file', not encoded. double.share is the share of a test."""
    kind = "share"
    letter, permissions = "f", "rwdlc"
    azcopy = "File"

    def __init__(self, program, *options, **more):
        super().__init__(program, "--files", *options, **more)
        self.share = None

    def request(self, method, path, query=(), headers=(), body=b"", **options):
        kept = {"x-ms-allow-trailing-dot": "true", **dict(headers)}
        return super().request(method, path, query, kept, body, **options)

    def limit(self, share, size):
        """From now on the share holds so many bytes."""
        self.control("POST", "/-/limit", f"{share}:{size}")

    def account_keys(self, share):
        return {"account_name": self.account, "account_key": self.key, "file_endpoint": self.endpoint,
                "container_name": "none"}

    def folder_keys(self, share):
        return {"storage_type": "file", "file_share": share}

    def folder(self, act, path, **keys):
        """A folder in the share of a test as a cluster file has it, beside others; its account file is made, too."""
        act.account("shared", **self.account_keys(self.share))
        return {"azure_blob_config_file": "aux_data/configs/shared.yaml", "path": f"files/{path}",
                **self.folder_keys(self.share), **keys}

    def sas(self, share, hours=1):
        return self.share_sas(share, hours=hours)

    def mkdir(self, path):
        """With what it is in, where that is not there."""
        parts = path.split("/")
        for i in range(2, len(parts) + 1):
            self.request("PUT", "/".join(parts[:i]), {"restype": "directory"}, expect=(201, 409))

    def put(self, path, data=b"", headers=()):
        if path.count("/") > 1:
            self.mkdir(path.rsplit("/", 1)[0])
        self.request("PUT", path, headers={"x-ms-type": "file", "x-ms-content-length": str(len(data)), **dict(headers)})
        for start in range(0, len(data), RANGE):
            part = data[start:start + RANGE]
            md5 = base64.b64encode(hashlib.md5(part).digest()).decode()
            self.request("PUT", path, {"comp": "range"}, {
                "x-ms-range": f"bytes={start}-{start + len(part) - 1}", "x-ms-write": "update", "content-md5": md5,
                "x-ms-file-last-write-time": "preserve"}, part)

    def rmdir(self, path):
        self.request("DELETE", path, {"restype": "directory"})

    def entries(self, path, prefix=""):
        """{name: its size, None of a directory} of one directory."""
        found, marker = {}, ""
        while True:
            query = {"restype": "directory", "comp": "list", "prefix": prefix, "marker": marker}
            page = ET.fromstring(self.request("GET", path, {k: v for k, v in query.items() if v})[2])
            for entry in page.find("Entries"):
                name = entry.find("Name")
                text = urllib.parse.unquote(name.text) if name.get("Encoded") == "true" else name.text
                size = entry.findtext("Properties/Content-Length")
                found[text] = None if entry.tag == "Directory" else int(size)
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return found

    def list(self, share, prefix="", folders=False):
        """{path below the share: size} of all files below a directory, "" or one that ends in '/'; with folders also
        of all directories, with None."""
        found = {}
        status, _, _ = self.request("GET", f"{share}/{prefix.rstrip('/')}", {"restype": "directory"}, expect=(200, 404))
        for name, size in self.entries(f"{share}/{prefix}".rstrip("/")).items() if status == 200 else ():
            if size is not None or folders:
                found[prefix + name] = size
            if size is None:
                found |= self.list(share, f"{prefix}{name}/", folders)
        return found

    def share_sas(self, share, permissions="rcwdl", hours=1):
        expiry = utc(hours)
        text = "\n".join([permissions, "", expiry, f"/file/{self.account}/{share}", "", "", "", VERSION] + [""] * 5)
        return urllib.parse.urlencode(
            {"sv": VERSION, "se": expiry, "sr": "s", "sp": permissions, "sig": self.sign(text)})
