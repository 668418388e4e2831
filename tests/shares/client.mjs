// The double of the File service, as Microsoft's client sees it: node --test client.mjs, told by the environment of
// PORT, ACCOUNT and KEY.
import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import dns from "node:dns";
import { beforeEach, test } from "node:test";

import {
    AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, FileSASPermissions,
    ShareSASPermissions, ShareServiceClient, StorageSharedKeyCredential, generateAccountSASQueryParameters,
    generateFileSASQueryParameters,
} from "@azure/storage-file-share";

const { PORT, ACCOUNT, KEY } = process.env;
// The account is in the host's name, as in the cloud: the client's own rename leaves one that is in the path out.
const ENDPOINT = `http://${ACCOUNT}.file.localhost:${PORT}`;
const lookup = dns.lookup;
dns.lookup = (name, ...rest) => lookup(name.endsWith(".localhost") ? "127.0.0.1" : name, ...rest);

const RANGE = 4 << 20;
const ONCE = { retryOptions: { maxTries: 1 } };
const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);
const service = new ShareServiceClient(ENDPOINT, credential, ONCE);
let share, root;

beforeEach(async () => {
    share = service.getShareClient(`share-${randomUUID().slice(0, 8)}`);
    root = share.rootDirectoryClient;
    await share.create();
});

/** What a promise is refused with: "STATUS CODE". */
async function refusal(promise) {
    const error = await promise.then(() => assert.fail("it was not refused"), (e) => e);
    return `${error.statusCode} ${error.code ?? error.details?.errorCode}`;
}

async function put(path, data, options) {
    const file = root.getFileClient(path);
    await file.uploadData(Buffer.from(data), options);
    return file;
}

async function names(iterator) {
    const found = [];
    for await (const entry of iterator)
        found.push(entry.kind === "directory" ? `${entry.name}/` : entry.name);
    return found;
}

test("shares", async () => {
    assert.equal(await refusal(share.create()), "409 ShareAlreadyExists");
    assert.equal(await refusal(service.getShareClient("No--Name").create()), "400 InvalidResourceName");
    assert.equal((await share.getProperties()).quota, 5120);
    await share.setQuota(7);
    assert.equal((await share.getProperties()).quota, 7);
    const seen = [];
    for await (const one of service.listShares({ prefix: share.name }))
        seen.push([one.name, one.properties.quota]);
    assert.deepEqual(seen, [[share.name, 7]]);
    await put("x", "four");
    assert.equal((await share.getStatistics()).shareUsageBytes, 4);
    await share.delete();
    assert.equal(await refusal(share.getProperties()), "404 ShareNotFound");
    assert.equal(await refusal(root.getFileClient("x").getProperties()), "404 ShareNotFound");
});

test("an account in the path", async () => {
    await put("x", "data");
    const other = new ShareServiceClient(`http://127.0.0.1:${PORT}/${ACCOUNT}`, credential, ONCE);
    const file = other.getShareClient(share.name).rootDirectoryClient.getFileClient("x");
    assert.equal((await file.downloadToBuffer()).toString(), "data");
});

test("a file of several ranges comes back, and its parts", async () => {
    const data = randomBytes(2 * RANGE + 12345);
    const file = await put("big", data, { fileHttpHeaders: { fileContentType: "text/x" }, metadata: { one: "1" } });
    assert.ok((await file.downloadToBuffer()).equals(data));
    const part = await file.downloadToBuffer(Buffer.alloc(1000), RANGE - 500, 1000);
    assert.ok(part.equals(data.subarray(RANGE - 500, RANGE + 500)));
    const seen = await file.getProperties();
    assert.deepEqual([seen.contentLength, seen.contentType, seen.metadata], [data.length, "text/x", { one: "1" }]);
    const ranged = await file.download(0, 10, { rangeGetContentMD5: true });
    assert.equal(Buffer.from(ranged.contentMD5).toString("hex"),
        createHash("md5").update(data.subarray(0, 10)).digest("hex"));
    assert.equal(await refusal(file.download(data.length + 1, 4)), "416 InvalidRange");
    assert.equal(await refusal(file.download(0, RANGE + 1, { rangeGetContentMD5: true })), "400 OutOfRangeInput");
    assert.deepEqual((await file.getRangeList()).rangeList, [{ start: 0, end: data.length - 1 }]);
});

test("what is not written reads as zeroes, and a write changes the ETag and the time", async () => {
    const file = root.getFileClient("holes");
    const made = await file.create(RANGE * 2 + 10);
    const written = await file.uploadRange("abc", 5, 3);
    assert.notEqual(made.etag, written.etag);
    const data = await file.downloadToBuffer();
    assert.equal(data.length, RANGE * 2 + 10);
    assert.equal(data.subarray(4, 9).toString(), "\0abc\0");
    assert.equal(data.filter((c) => c).length, 3);
    await file.clearRange(5, 2);
    assert.equal((await file.downloadToBuffer(4, 6)).toString(), "\0\0\0c\0\0");
    await file.resize(3);
    assert.equal((await file.getProperties()).contentLength, 3);
    await file.resize(10);
    assert.equal((await file.downloadToBuffer()).toString(), "\0".repeat(10));
});

test("Put Range is held to its limits", async () => {
    const file = root.getFileClient("x");
    await file.create(RANGE + 1);
    assert.equal(await refusal(file.uploadRange("abc", RANGE, 3)), "416 InvalidRange");
    const wrong = createHash("md5").update("abd").digest();
    assert.equal(await refusal(file.uploadRange("abc", 0, 3, { contentMD5: wrong })), "400 Md5Mismatch");
    const right = createHash("md5").update("abc").digest();
    const written = await file.uploadRange("abc", 0, 3, { contentMD5: right });
    assert.ok(Buffer.from(written.contentMD5).equals(right));
    assert.equal(await refusal(root.getFileClient("none").uploadRange("abc", 0, 3)), "404 ResourceNotFound");
});

test("times, attributes and metadata", async () => {
    const file = root.getFileClient("x");
    const when = new Date("2021-02-03T04:05:06.789Z");
    await file.create(1, { creationTime: when, lastWriteTime: when, fileAttributes: "ReadOnly|Archive" });
    let seen = await file.getProperties();
    assert.deepEqual([seen.fileCreatedOn, seen.fileLastWriteOn], [when, when]);
    assert.equal(seen.fileAttributes, "ReadOnly|Archive");
    assert.equal(await refusal(file.delete()), "409 ReadOnlyAttribute");
    await file.setProperties({ fileAttributes: "None", lastWriteTime: when });
    await file.uploadRange("a", 0, 1, { fileLastWrittenMode: "Preserve" });
    assert.deepEqual((await file.getProperties()).fileLastWriteOn, when);
    await file.uploadRange("a", 0, 1);
    assert.notDeepEqual((await file.getProperties()).fileLastWriteOn, when);
    await file.setMetadata({ a: "b" });
    seen = await file.getProperties();
    assert.deepEqual(seen.metadata, { a: "b" });
    await file.delete();
    assert.equal(await refusal(file.getProperties()), "404 ResourceNotFound");
});

test("directories", async () => {
    const a = root.getDirectoryClient("a"), b = a.getDirectoryClient("b");
    assert.equal(await refusal(b.create()), "404 ParentNotFound");
    assert.equal(await refusal(b.getFileClient("x").create(1)), "404 ParentNotFound");
    await a.create({ metadata: { m: "n" } });
    await b.create();
    assert.equal(await refusal(a.create()), "409 ResourceAlreadyExists");
    assert.equal(await refusal(a.delete()), "409 DirectoryNotEmpty");
    assert.equal(await refusal(root.getFileClient("a").create(1)), "409 ResourceTypeMismatch");
    assert.equal(await refusal(root.getFileClient("a").getProperties()), "404 ResourceNotFound");
    assert.deepEqual((await a.getProperties()).metadata, { m: "n" });
    await b.delete();
    await a.delete();
    assert.equal(await a.exists(), false);
});

test("names differ by more than case, and keep theirs", async () => {
    await put("Straße ÄÖ", "1");
    await put("sTRAße äö", "2");
    assert.deepEqual(await names(root.listFilesAndDirectories()), ["sTRAße äö"]);
    assert.equal((await root.getFileClient("STRAßE äÖ").downloadToBuffer()).toString(), "2");
    for (const name of ["a:b", "a*b", "a?b", "a|b", "a\"b", "a<b", "a\\b", "NUL", "com1", "a\tb"])
        assert.equal(await refusal(root.getFileClient(name).create(1)), "400 InvalidResourceName", name);
    assert.equal(await refusal(root.getFileClient("x".repeat(256)).create(1)), "400 InvalidFileOrDirectoryPathName");
    await root.getFileClient("ä".repeat(255)).create(1);
    await put("dots...", "3");
    assert.equal((await root.getFileClient("dots").downloadToBuffer()).toString(), "3");
});

test("a trailing dot is kept when it is allowed", async () => {
    const allowing = new ShareServiceClient(ENDPOINT, credential, { ...ONCE, allowTrailingDot: true });
    const file = allowing.getShareClient(share.name).rootDirectoryClient.getFileClient("dot.");
    await file.create(1);
    assert.deepEqual(await names(root.listFilesAndDirectories()), ["dot."]);
    assert.equal(await refusal(root.getFileClient("dot.").getProperties()), "404 ResourceNotFound");
});

test("listings: pages, prefixes, what is included, names that XML cannot hold", async () => {
    await root.getDirectoryClient("Sub").create();
    for (const name of ["s1", "S2", "other & '", "s\uFFFE"])
        await put(name, name);
    assert.deepEqual((await names(root.listFilesAndDirectories({ prefix: "S" }))).sort(),
        ["S2", "Sub/", "s1", "s\uFFFE"]);
    const pages = [];
    for await (const page of root.listFilesAndDirectories().byPage({ maxPageSize: 2 }))
        pages.push(page.segment.fileItems.length + page.segment.directoryItems.length);
    assert.deepEqual(pages, [2, 2, 1]);
    const list = root.listFilesAndDirectories({ includeTimestamps: true, includeEtag: true, includeAttributes: true,
        includeExtendedInfo: true, includePermissionKey: true });
    for await (const entry of list) {
        const client = entry.kind === "file" ? root.getFileClient(entry.name) : root.getDirectoryClient(entry.name);
        const seen = await client.getProperties();
        assert.equal(entry.properties.etag, seen.etag);
        assert.deepEqual(entry.properties.lastWriteTime, seen.fileLastWriteOn);
        assert.deepEqual(entry.properties.creationTime, seen.fileCreatedOn);
        assert.deepEqual(entry.properties.lastModified, seen.lastModified);
        assert.equal(entry.fileId, seen.fileId);
        assert.equal(entry.attributes, seen.fileAttributes);
        assert.equal(entry.properties.contentLength, seen.contentLength);
    }
    assert.equal(await refusal(names(root.getDirectoryClient("none").listFilesAndDirectories())),
        "404 ResourceNotFound");
});

test("renaming", async () => {
    await root.getDirectoryClient("d").create();
    const first = await put("first", "1"), before = await first.getProperties();
    const { destinationFileClient: moved } = await first.rename("d/moved & x", { metadata: { k: "v" } });
    assert.equal((await moved.downloadToBuffer()).toString(), "1");
    const after = await moved.getProperties();
    assert.deepEqual([after.metadata, after.fileLastWriteOn], [{ k: "v" }, before.fileLastWriteOn]);
    assert.notEqual(after.etag, before.etag);
    assert.equal(await first.exists(), false);
    await put("second", "2");
    assert.equal(await refusal(moved.rename("second")), "409 ResourceAlreadyExists");
    await moved.rename("second", { replaceIfExists: true });
    assert.equal((await root.getFileClient("second").downloadToBuffer()).toString(), "1");
    assert.equal(await refusal(root.getFileClient("none").rename("x")), "404 ResourceNotFound");
    assert.equal(await refusal(root.getFileClient("second").rename("no/x")), "404 ParentNotFound");
    assert.equal(await refusal(root.getFileClient("second").rename("d", { replaceIfExists: true })),
        "409 ResourceTypeMismatch");
    await put("d/in", "3");
    await root.getDirectoryClient("d").rename("e");
    assert.equal((await root.getFileClient("e/in").downloadToBuffer()).toString(), "3");
});

test("copies", async () => {
    const source = await put("source", "0123456789", { metadata: { k: "v" } });
    const copy = root.getFileClient("copy");
    const started = await copy.startCopyFromURL(source.url);
    assert.equal(started.copyStatus, "success");
    const seen = await copy.getProperties();
    assert.deepEqual([seen.metadata, seen.copyStatus, seen.contentLength], [{ k: "v" }, "success", 10]);
    assert.equal((await copy.downloadToBuffer()).toString(), "0123456789");
    const signed = await source.generateSasUrl({ permissions: FileSASPermissions.parse("r"),
        expiresOn: new Date(Date.now() + 3600e3) });
    await copy.uploadRangeFromURL(signed, 7, 2, 3);
    assert.equal((await copy.downloadToBuffer()).toString(), "0178956789");
    assert.equal(await refusal(copy.uploadRangeFromURL(source.url, 7, 2, 3)), "403 CannotVerifyCopySource");
    assert.equal(await refusal(copy.startCopyFromURL(root.getFileClient("none").url)), "404 CannotVerifyCopySource");
});

test("signatures of an account, a share and a file", async () => {
    const file = await put("x", "data"), expiresOn = new Date(Date.now() + 3600e3);
    const account = generateAccountSASQueryParameters({ expiresOn, services: AccountSASServices.parse("f").toString(),
        permissions: AccountSASPermissions.parse("rwdlc"),
        resourceTypes: AccountSASResourceTypes.parse("sco").toString() }, credential);
    const all = new ShareServiceClient(`${ENDPOINT}?${account}`, undefined, ONCE).getShareClient(share.name);
    assert.deepEqual(await names(all.rootDirectoryClient.listFilesAndDirectories()), ["x"]);
    await all.rootDirectoryClient.getFileClient("x").rename("y");
    await all.rootDirectoryClient.getFileClient("y").rename("x");
    const sas = (permissions) => generateFileSASQueryParameters({ shareName: share.name, expiresOn,
        permissions: ShareSASPermissions.parse(permissions) }, credential);
    const open = (query) => new ShareServiceClient(`${ENDPOINT}?${query}`, undefined, ONCE).getShareClient(share.name)
        .rootDirectoryClient;
    assert.equal((await open(sas("r")).getFileClient("x").downloadToBuffer()).toString(), "data");
    assert.equal(await refusal(open(sas("r")).getFileClient("x").delete()), "403 AuthorizationPermissionMismatch");
    assert.equal(await refusal(names(open(sas("r")).listFilesAndDirectories())),
        "403 AuthorizationPermissionMismatch");
    const one = generateFileSASQueryParameters({ shareName: share.name, filePath: "x", expiresOn,
        permissions: FileSASPermissions.parse("r") }, credential);
    assert.equal((await open(one).getFileClient("x").downloadToBuffer()).toString(), "data");
    await put("z", "other");
    assert.equal(await refusal(open(one).getFileClient("z").download()), "403 AuthenticationFailed");
    const blobs = generateAccountSASQueryParameters({ expiresOn, services: "b",
        permissions: AccountSASPermissions.parse("r"), resourceTypes: "sco" }, credential);
    assert.equal(await refusal(open(blobs).getFileClient("x").download()), "403 AuthorizationServiceMismatch");
    assert.equal(await refusal(new ShareServiceClient(ENDPOINT, undefined, ONCE).getShareClient(share.name)
        .rootDirectoryClient.getFileClient("x").download()), "401 NoAuthenticationInformation");
    assert.ok(await file.exists());
});
