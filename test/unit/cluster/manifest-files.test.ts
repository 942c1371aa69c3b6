import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readManifestFiles } from "../../../src/cluster/manifest-files.ts";

// The bounds under test.
const MAX_MANIFEST_FILE_BYTES = 16 * 1024 * 1024;
const MAX_MANIFEST_FILES = 1_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-manifests-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("manifest files", () => {
  it("a folder of more files than allowed is refused before one is read", async () => {
    for (let index = 0; index < MAX_MANIFEST_FILES; index++)
      writeFileSync(path.join(folder, `${index}.yaml`), "# none\n");
    expect(await readManifestFiles([folder])).toHaveLength(MAX_MANIFEST_FILES);
    writeFileSync(path.join(folder, "more.yaml"), "");
    await expect(readManifestFiles([folder])).rejects.toThrow(
      `${MAX_MANIFEST_FILES + 1} manifest files, at most ${MAX_MANIFEST_FILES} are read`,
    );
  });

  it("a file larger than allowed is refused before it is read", async () => {
    const file = path.join(folder, "large.yaml");
    writeFileSync(file, "");
    truncateSync(file, MAX_MANIFEST_FILE_BYTES + 1);
    await expect(readManifestFiles([file])).rejects.toThrow(
      `the file has more than ${MAX_MANIFEST_FILE_BYTES} bytes`,
    );
  });

  it.each([
    "",
    " \n\n",
  ])("a file that was emptied is refused, and one of comments is not: %j", async (text) => {
    const file = path.join(folder, "pods.yaml");
    writeFileSync(file, text);
    await expect(readManifestFiles([file])).rejects.toThrow(`${file}:1: the file holds no object`);
    writeFileSync(file, "# nothing yet\n");
    expect(await readManifestFiles([folder])).toHaveLength(1);
  });
});
