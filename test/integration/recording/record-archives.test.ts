import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { execPath, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import { play } from "../../support/recording/played.ts";
import { RecordedGateway } from "../../support/recording/recorded-gateway.ts";

const CONTENT = Buffer.alloc(100_000, "secret content ");
const sha256 = createHash("sha256").update(CONTENT).digest("base64");

let gateway: RecordedGateway;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-archives-"));
  mkdirSync(path.join(folder, "from"));
  mkdirSync(path.join(folder, "to"));
  writeFileSync(path.join(folder, "from", "data.txt"), CONTENT, { mode: 0o644 });
});
afterEach(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true });
});

async function run(command: readonly string[], input?: Uint8Array): Promise<Buffer> {
  const parts: Buffer[] = [];
  const stdout = { takePart: (part: Uint8Array) => void parts.push(Buffer.from(part)) };
  const at = execPath({ namespace: "default", pod: "web", container: "main" }, command);
  async function* stdin() {
    if (input !== undefined) yield input;
  }
  const streams = { stdout, ...(input && { stdin: stdin() }) };
  const { exitCode } = await new WebSocketExecutor(gateway.target, at).stream(streams);
  expect(exitCode).toBe(0);
  return Buffer.concat(parts);
}

const FILE = { type: "file", mode: "644", size: CONTENT.byteLength, sha256 };

describe.each([false, true])("kubectl cp, node with WebSockets: %s", (declaresWebSockets) => {
  beforeEach(async () => {
    gateway = await RecordedGateway.start({ declaresWebSockets });
  });

  it("from a container: the names, sizes and digests of files, without their content", async () => {
    const archive = await run(["tar", "cf", "-", "-C", path.join(folder, "from"), "."]);
    expect(archive.includes(CONTENT)).toBe(true);
    const text = await gateway.recording();
    expect(text).not.toContain("secret content");
    expect(text.length).toBeLessThan(4_000);
    const { of, header, comments, stdout } = play(text);
    expect(header).toMatchObject({ sluice: { archive: "pack" } });
    expect(of("f").map((data) => JSON.parse(data))).toMatchObject([
      { name: "./", type: "folder" },
      { name: "./data.txt", ...FILE },
    ]);
    expect(stdout.byteLength).toBe(0);
    expect(comments.at(-1)).toMatchObject({ head: { bytes: archive.byteLength } });
  });

  it("to a container: the same of files in the input", async () => {
    const archive = execFileSync("tar", ["cf", "-", "-C", path.join(folder, "from"), "data.txt"]);
    await run(["tar", "-xmf", "-", "-C", path.join(folder, "to")], archive);
    expect(readFileSync(path.join(folder, "to", "data.txt")).equals(CONTENT)).toBe(true);
    const text = await gateway.recording();
    expect(text).not.toContain("secret content");
    const { of, header } = play(text);
    expect(header).toMatchObject({ sluice: { archive: "unpack" } });
    expect(of("f").map((data) => JSON.parse(data))).toEqual([{ name: "data.txt", ...FILE }]);
  });

  it("records as output what a program with tar's name prints", async () => {
    writeFileSync(path.join(folder, "tar"), "#!/bin/sh\necho a shell of my own\n", { mode: 0o755 });
    await run([path.join(folder, "tar"), "cf", "-"]);
    expect(play(await gateway.recording()).stdout.toString()).toBe("a shell of my own\n");
  });
});
