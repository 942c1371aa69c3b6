import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { execPath, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import { readPublicKeys, verifyRecording } from "../../../src/recording/reading/verify-recording.ts";
import { readSigningKey } from "../../../src/recording/signing-key.ts";
import { systemDisk } from "../../../src/recording/thread/disk.ts";
import { finishLeftParts } from "../../../src/recording/thread/finish-left-parts.ts";
import { partOf, RecordingFile } from "../../../src/recording/thread/recording-file.ts";
import { SessionWriter } from "../../../src/recording/thread/session-writer.ts";
import { play } from "../../support/recording/played.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";
import { RecordedGateway } from "../../support/recording/recorded-gateway.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");

let folder: string;
const gateways: RecordedGateway[] = [];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-shared-"));
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<RecordedGateway> {
  const gateway = await RecordedGateway.start({ folder });
  gateways.push(gateway);
  return gateway;
}

const sink = { takePart: () => undefined };
async function say({ target }: RecordedGateway, text: string): Promise<void> {
  const at = execPath({ namespace: "default", pod: "web", container: "main" }, ["echo", text]);
  await new WebSocketExecutor(target, at).stream({ stdout: sink });
}

/** An unfinished recording of a writer that is gone. */
function leave(id: string): string {
  const file = path.join(folder, `2026/11/22/${id}.cast`);
  const facts = { ...FACTS, session: id };
  const part = partOf(file, "gone");
  const writer = new SessionWriter(
    new RecordingFile(systemDisk, file, part),
    { facts, maxOutputBytes: 0 },
    privateKey,
  );
  writer.output("stdout", 10, Buffer.from(`output of ${id}\n`));
  writer.flush(20);
  return file;
}

describe("two recorders on one folder", () => {
  it("share its key, and do not finish each other's recordings", async () => {
    const pair = await Promise.all([start(), start()]);
    const texts = Array.from({ length: 10 }, (_, index) => `session ${index}`);
    await Promise.all(texts.map((text, index) => say(pair[index % 2] as RecordedGateway, text)));
    const files = await (pair[0] as RecordedGateway).recordings(texts.length);
    const keys = await readPublicKeys([], folder);
    expect(keys).toHaveLength(1);
    for (const file of files)
      expect(await verifyRecording(file, keys)).toMatchObject({
        verdict: "unchanged",
        head: { end: "completed" },
      });
    const said = files.map((file) => play(readFileSync(file, "utf8")).stdout.toString().trim());
    expect(said.sort()).toEqual(texts);
  });

  it("finish each recording of a dead third one once", async () => {
    const files = Array.from({ length: 20 }, (_, index) => leave(`left-${index}`));
    const finished: string[] = [];
    const look = (writer: string) =>
      finishLeftParts(folder, writer, privateKey, (outcome, file) => finished.push(`${outcome} ${file}`));
    await Promise.all(["one", "two", "three"].map(look));
    expect(finished.sort()).toEqual(files.map((file) => `finished ${path.relative(folder, file)}`).sort());
    for (const file of files)
      expect(await verifyRecording(file, [publicKey])).toMatchObject({ verdict: "unchanged" });
  });
});

describe("a recording of a newer format", () => {
  it("is left to a newer version, whether finished or not", async () => {
    const file = leave("newer");
    const part = partOf(file, "gone");
    writeFileSync(part, readFileSync(part, "utf8").replace('"sluice":{', '"sluice":{"format":2,'));
    await finishLeftParts(folder, "new", privateKey, () => expect.unreachable());
    expect([existsSync(part), existsSync(file)]).toEqual([true, false]);
    renameSync(part, file);
    expect(await verifyRecording(file, [publicKey])).toMatchObject({
      verdict: "newer-format",
      problem: "it has format 2, and this program reads 1",
    });
  });

  it("differs from what this program writes, which is format 1", async () => {
    const gateway = await start();
    await say(gateway, "hello");
    expect(play(await gateway.recording()).header).toMatchObject({ sluice: { format: 1 } });
  });
});

describe("the signing key", () => {
  it("is created once, however many processes start together", async () => {
    const keys = await Promise.all(Array.from({ length: 10 }, () => readSigningKey(folder, undefined)));
    expect(new Set(keys).size).toBe(1);
  });

  it("that is missing or of another kind stops the start", async () => {
    const missing = path.join(folder, "missing.pem");
    await expect(readSigningKey(folder, missing)).rejects.toThrow("ENOENT");
    const { privateKey: other } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const file = path.join(folder, "other.pem");
    writeFileSync(file, other.export({ type: "pkcs8", format: "pem" }));
    await expect(readSigningKey(folder, file)).rejects.toThrow("is not an Ed25519 private key");
  });

  it("that was removed from the folder's keys is unknown to verification", async () => {
    const gateway = await start();
    await say(gateway, "hello");
    const [file = ""] = await gateway.recordings();
    rmSync(path.join(folder, "keys"), { recursive: true });
    const keys = await readPublicKeys([], folder);
    expect(await verifyRecording(file, keys)).toMatchObject({ verdict: "unknown-key" });
  });
});

it("a thread that does not open a recording in time: the rule decides", async () => {
  const program = path.join(folder, "hanging.mjs");
  writeFileSync(
    program,
    'import { parentPort } from "node:worker_threads"; parentPort.on("message", ({ kind }) => kind === "stop" && parentPort.close());',
  );
  const recording = { rules: [{ name: "must" }], maxHold: "100ms" };
  const gateway = await RecordedGateway.start({ folder, recording, program: pathToFileURL(program) });
  gateways.push(gateway);
  await expect(say(gateway, "hello")).rejects.toThrow("requires a recording, and none can be written now");
  expect(gateway.logLines.join("")).toContain("the recording was not opened for 0.1 s");
});
