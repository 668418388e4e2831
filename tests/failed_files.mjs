// A reporter for `node --test`: the files of which a test failed, a line each.
export default async function* failedFiles(events) {
    const files = new Set();
    for await (const { type, data } of events) {
        if (type === "test:fail" && data.file && !data.todo && !files.has(data.file)) {
            files.add(data.file);
            yield `${data.file}\n`;
        }
    }
}
