"""An authority for certificates, made for one run. Programs trust it by ACT_CA_FILE or SSL_CERT_FILE."""
import ssl
import subprocess

CONFIG = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1{names}
"""


class Authority:
    def __init__(self, folder):
        self.folder, self.file, self.key = folder, folder / "authority.pem", folder / "authority-key.pem"
        self.make("authority", self.file, self.key)

    def make(self, kind, file, key, *options, names=()):
        config = self.folder / f"{kind}.cnf"
        config.write_text(CONFIG.format(names="".join(f", DNS:{name}" for name in names)))
        subprocess.run(["openssl", "req", "-x509", "-config", config, "-extensions", kind, "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={kind}", "-out", file,
                        "-keyout", key,
                        *options], check=True, capture_output=True)

    def issue(self, *names):
        """A file with a certificate for this machine and hosts, and its key."""
        file, key = self.folder / "server.pem", self.folder / "server-key.pem"
        self.make("server", file, key, "-CA", self.file, "-CAkey", self.key, names=names)
        file.write_text(file.read_text() + key.read_text())
        return file

    def context(self):
        """Of a client that trusts it, and nobody else."""
        return ssl.create_default_context(cafile=self.file)
