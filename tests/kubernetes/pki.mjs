// Certificates for one run of the double, and the kubeconfig files that name them.
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

async function sign(folder, name, subject, extensions) {
    const file = (kind) => join(folder, `${name}.${kind}`);
    await writeFile(file("ext"), extensions.join("\n"));
    await run("openssl", ["req", "-new", ...CURVE, "-keyout", file("key"), "-out", file("csr"), "-subj", subject]);
    await run("openssl", ["x509", "-req", "-in", file("csr"), "-CA", join(folder, "ca.crt"), "-CAkey",
        join(folder, "ca.key"), "-set_serial", String(name.length), "-days", "30", "-extfile", file("ext"),
        "-out", file("crt")]);
}

/** Makes ca, server and client (.crt, .key) in a folder, and gives their text. */
export async function makeCertificates(folder, { user, names }) {
    await mkdir(folder, { recursive: true });
    await run("openssl", ["req", "-x509", ...CURVE, "-keyout", join(folder, "ca.key"), "-out", join(folder, "ca.crt"),
        "-subj", "/CN=kubernetes-ca", "-days", "30"]);
    await Promise.all([
        sign(folder, "server", "/CN=kube-apiserver", [`subjectAltName=IP:127.0.0.1,${
            names.map((name) => `DNS:${name}`).join(",")}`, "extendedKeyUsage=serverAuth"]),
        sign(folder, "client", `/O=act-users/CN=${user}`, ["extendedKeyUsage=clientAuth"]),
    ]);
    const files = ["ca.crt", "server.crt", "server.key", "client.crt", "client.key"];
    return Object.fromEntries(await Promise.all(files.map(
        async (name) => [name, await readFile(join(folder, name), "utf8")])));
}

const base64 = (text) => Buffer.from(text).toString("base64");

/** Writes kubeconfig files and gives their names: {token, certificate, exec, execBeta, plain}. JSON is YAML. */
export async function writeKubeconfigs(folder, { certificates, url, plain, token, namespace }) {
    const authority = base64(certificates["ca.crt"]);
    const credential = join(folder, "credential.json");
    await writeFile(credential, execCredential(token));
    await writeFile(join(folder, "credential"), `#!/bin/sh\necho run >>'${folder}/credential.runs'\n`
        + `exec sed "s|@VERSION@|$1|" '${credential}'\n`, { mode: 0o755 });
    const plugin = (version) => ({ exec: { apiVersion: `client.authentication.k8s.io/${version}`,
        command: join(folder, "credential"), args: [version], interactiveMode: "Never" } });
    const users = {
        token: { token },
        certificate: { "client-certificate-data": base64(certificates["client.crt"]),
            "client-key-data": base64(certificates["client.key"]) },
        exec: plugin("v1"), execBeta: plugin("v1beta1"),
        plain: {},
    };
    const written = {};
    for (const [name, user] of Object.entries(users)) {
        written[name] = join(folder, `kubeconfig-${name}`);
        await writeFile(written[name], JSON.stringify({ apiVersion: "v1", kind: "Config", "current-context": "double",
            clusters: [{ name: "double", cluster: name === "plain" ? { server: plain }
                : { server: url, "certificate-authority-data": authority } }],
            users: [{ name: "act", user }],
            contexts: [{ name: "double", context: { cluster: "double", user: "act", namespace } }] }, null, 2),
        { mode: 0o600 });
    }
    return written;
}

/** What the exec plugin answers; it fills in the version that it is asked for. */
export const execCredential = (token, expirationTimestamp) => JSON.stringify({
    apiVersion: "client.authentication.k8s.io/@VERSION@", kind: "ExecCredential",
    status: { token, ...(expirationTimestamp && { expirationTimestamp }) } });
