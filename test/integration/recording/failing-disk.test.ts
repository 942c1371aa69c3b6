import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { RecordingIndex } from "../../../src/recording/reading/recording-index.ts";
import { readPublicKeys, verifyRecording } from "../../../src/recording/reading/verify-recording.ts";
import { eventually } from "../../support/eventually.ts";
import { play } from "../../support/recording/played.ts";
import { filesIn, RecordedGateway } from "../../support/recording/recorded-gateway.ts";
import { endExec, type KubeletSession, ScriptedKubelet, SUCCESS } from "../../support/scripted-kubelet.ts";
import { V5Client } from "../../support/v5-client.ts";

const program = pathToFileURL(path.resolve("test/support/recording/faulty-disk-thread.mjs"));
const MIB = 1024 * 1024;
const HOUR_MS = 60 * 60_000;

let gateway: RecordedGateway | undefined;
let kubelet: ScriptedKubelet | undefined;
afterEach(async () => {
  vi.useRealTimers();
  setFault("");
  await gateway?.stop();
  await kubelet?.close();
  gateway = kubelet = undefined;
});

function setFault(fault: "" | "full" | "hang" | "die"): void {
  if (gateway === undefined) return;
  const file = path.join(gateway.folder, "fault");
  if (fault === "") rmSync(file, { force: true });
  else writeFileSync(file, fault);
}

/** Starts a session with a scripted node, and resolves once its first output is recorded. */
async function start(recording: object): Promise<{ client: V5Client; node: KubeletSession }> {
  let begun: (session: KubeletSession) => void = () => {};
  const session = new Promise<KubeletSession>((resolve) => {
    begun = resolve;
  });
  kubelet = new ScriptedKubelet({
    onStream: (name, _stream, each) => {
      if (name === "stdout") begun(each);
    },
  });
  gateway = await RecordedGateway.start({ kubeletPort: await kubelet.listen(), program, recording });
  // On a busy machine the thread may need longer to start than a session is held.
  const { folder } = gateway;
  await eventually("the recorder's thread runs", () => filesIn(folder, ".json").length > 0);
  const client = new V5Client(gateway.authority, "stdout=true&command=x");
  const node = await session;
  node.streams.get("stdout")?.write(Buffer.from("before "));
  await expect.poll(() => client.messages.length).toBeGreaterThan(0);
  return { client, node };
}

const refuse = { rules: [{ name: "must", recordOnFailure: "refuse" }] };
const goOn = { rules: [{ name: "may", recordOnFailure: "continue" }] };

it("a folder that is removed ends the session within seconds, not its recording at its end", async () => {
  const { client, node } = await start(refuse);
  for (const name of readdirSync(gateway?.folder ?? ""))
    if (/^\d{4}$/.test(name)) rmSync(path.join(gateway?.folder ?? "", name), { recursive: true });
  node.streams.get("stdout")?.write(Buffer.from("lost"));
  const { status } = await client.done;
  expect(JSON.parse(status)).toMatchObject({
    code: 503,
    message: "the recording cannot be written: ENOENT",
  });
});

describe("a disk that is full", () => {
  it("refuse: ends the session, and names the cause in its Status and in the recording", async () => {
    const { client, node } = await start(refuse);
    setFault("full");
    node.streams.get("stdout")?.write(Buffer.from("lost"));
    const { status, closeCode } = await client.done;
    expect(JSON.parse(status)).toMatchObject({
      status: "Failure",
      code: 503,
      reason: "ServiceUnavailable",
      message: "the recording cannot be written: ENOSPC",
    });
    expect(closeCode).toBe(1000);
    await expect.poll(() => gateway?.harness.logLines.join("")).toContain('"cause":"recording-failed"');
  });

  it("is on /readyz?verbose until a recording is written whole", async () => {
    const health = () => gateway?.health;
    const { client, node } = await start(goOn);
    expect(health()).toBeUndefined();
    setFault("full");
    node.streams.get("stdout")?.write(Buffer.from("late"));
    await expect.poll(health).toEqual({
      note: expect.stringMatching(/^the last recording failed \d s ago: ENOSPC$/),
    });
    setFault("");
    endExec(node, SUCCESS);
    await client.done;
    await expect.poll(health).toBeUndefined();
  });

  it("continue: the session goes on, and the gap is in the recording, counted and digested", async () => {
    const { client, node } = await start(goOn);
    setFault("full");
    // The first part is encoded when the fault is found, and kept until it can be written.
    const stdout = node.streams.get("stdout");
    stdout?.write(Buffer.from("kept "));
    await expect
      .poll(() => gateway?.metric("sluice_recording_write_failures_total"))
      .toEqual(["sluice_recording_write_failures_total 1"]);
    const lost = Buffer.alloc(100_000, "lost ");
    stdout?.write(lost);
    await expect.poll(() => Buffer.concat(client.messages).includes("lost")).toBe(true);
    await expect.poll(() => gateway?.metric("sluice_recording_queued_bytes")).toEqual([]);
    setFault("");
    await expect
      .poll(async () => (await gateway?.metric("sluice_recording_gaps_total")) ?? [])
      .toHaveLength(1);
    stdout?.write(Buffer.from("after"));
    await expect.poll(() => Buffer.concat(client.messages).includes("after")).toBe(true);
    endExec(node, SUCCESS);
    await client.done;
    const recorded = play((await gateway?.recording()) ?? "");
    // If the fault came before the chunk's end, the gap contains this part, too.
    const isKept = recorded.stdout.toString() === "before kept after";
    if (!isKept) expect(recorded.stdout.toString()).toBe("before after");
    const [gap, ...more] = recorded.of("g").map((data) => JSON.parse(data));
    expect(more).toEqual([]);
    const missing = isKept ? lost : Buffer.concat([Buffer.from("kept "), lost]);
    const sha256 = createHash("sha256").update(missing).digest("base64");
    expect(gap).toMatchObject({ bytes: missing.byteLength, sha256 });
    expect(recorded.of("m").join()).toContain(`gap: ${missing.byteLength} bytes`);
    expect(recorded.comments.at(-1)).toMatchObject({ head: { gaps: 1, bytes: 100_017, end: "completed" } });
    // A recording with a gap is not whole.
    expect(gateway?.health).toMatchObject({ note: expect.stringContaining("ENOSPC") });
  });

  it("until the end: what is lost counts as lost, and the log has why", async () => {
    const { client, node } = await start(goOn);
    setFault("full");
    const stdout = node.streams.get("stdout");
    stdout?.write(Buffer.from("kept "));
    const metric = (name: string) => gateway?.metric(name) ?? [];
    await expect.poll(() => metric("sluice_recording_write_failures_total")).toHaveLength(1);
    stdout?.write(Buffer.alloc(100_000, "lost "));
    await expect.poll(() => Buffer.concat(client.messages).includes("lost")).toBe(true);
    endExec(node, SUCCESS);
    await client.done;
    await expect
      .poll(() => metric("sluice_recordings_total"))
      .toEqual(['sluice_recordings_total{result="failed"} 1']);
    const bytes = await metric("sluice_recording_bytes_total");
    const lost = bytes.find((line) => line.includes('as="lost"'));
    expect(Number(lost?.split(" ")[1])).toBeGreaterThanOrEqual(100_000);
    const lines = (gateway?.logLines ?? []).map((line) => JSON.parse(line));
    expect(lines.map(({ level, problem, msg }) => [level, problem, msg])).toEqual([
      ["warn", "ENOSPC", "output of a session cannot be recorded"],
      ["error", "ENOSPC", "a recording could not be finished"],
    ]);
  });
});

describe.each([
  ["full", "the recording cannot be written: ENOSPC"],
  ["hang", "the recording was not written for 0.5 s"],
  ["die", "the recording cannot be written: the thread that writes recordings has ended"],
] as const)("a fault at a command's end (%s)", (fault, message) => {
  it("refuse: the client gets the failure in place of the command's success", async () => {
    const { client, node } = await start({ ...refuse, maxHold: "500ms" });
    setFault(fault);
    node.streams.get("stdout")?.write(Buffer.from("last"));
    endExec(node, SUCCESS);
    const { stdout, status } = await client.done;
    expect(stdout.toString()).toBe("before last");
    expect(JSON.parse(status)).toMatchObject({ status: "Failure", code: 503, message });
  });
});

describe("a disk that hangs", () => {
  const small = { maxQueuedBytesPerSession: 256 * 1024, maxHold: "500ms" };

  it("refuse: holds the session, then ends it, and passes on only what the queue takes", async () => {
    const { client, node } = await start({ ...refuse, ...small });
    setFault("hang");
    node.streams.get("stdout")?.write(Buffer.alloc(4 * MIB, "x"));
    const { stdout, status } = await client.done;
    expect(JSON.parse(status)).toMatchObject({
      code: 503,
      message: "the recording was not written for 0.5 s",
    });
    expect(stdout.byteLength).toBeGreaterThan(64 * 1024);
    expect(stdout.byteLength).toBeLessThanOrEqual(256 * 1024 + 7);
    expect(gateway?.health).toMatchObject({
      note: expect.stringContaining("the recording was not written for 0.5 s"),
    });
    setFault("");
    // What was passed on is all recorded once the disk is back.
    const recorded = play((await gateway?.recording()) ?? "");
    expect(recorded.stdout.equals(stdout)).toBe(true);
    expect(recorded.comments.at(-1)).toMatchObject({ head: { end: "recording-failed" } });
    expect(filesIn(gateway?.folder ?? "", ".part")).toEqual([]);
  });

  it("continue: holds the session, then goes on, and marks what is missing", async () => {
    const { client, node } = await start({ ...goOn, ...small });
    setFault("hang");
    const output = Buffer.alloc(4 * MIB, "x");
    node.streams.get("stdout")?.write(output);
    await expect
      .poll(() => client.messages.reduce((sum, { byteLength }) => sum + byteLength - 1, 0))
      .toBe(output.byteLength + 7);
    setFault("");
    await expect
      .poll(async () => (await gateway?.metric("sluice_recording_gaps_total")) ?? [])
      .toHaveLength(1);
    endExec(node, SUCCESS);
    await client.done;
    const recorded = play((await gateway?.recording()) ?? "");
    const [gap] = recorded.of("g").map((data) => JSON.parse(data));
    expect(recorded.stdout.byteLength + gap.bytes).toBe(output.byteLength + 7);
    const held = await gateway?.metric("sluice_recording_held_seconds_total");
    expect(Number(held?.[0]?.split(" ")[1])).toBeGreaterThan(0.4);
  });
});

describe("a clock that jumps while a session is recorded", () => {
  it.each([
    ["an hour back", -1],
    ["a day ahead", 24],
  ])("%s: the recording has the times that passed, ends after them, is whole, and plays", async (_, hours) => {
    const { client, node } = await start(refuse);
    const startMs = performance.now();
    const { folder } = gateway as RecordedGateway;
    const chunks = () => /"chunk":/g.exec(readFileSync(filesIn(folder, ".part")[0] ?? "", "utf8"));
    await eventually("a chunk by the clock of before", chunks);
    writeFileSync(path.join(folder, "clock"), String(hours));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hours * HOUR_MS });
    node.streams.get("stdout")?.write(Buffer.from("after\n"));
    await expect.poll(() => client.messages.length).toBeGreaterThan(1);
    endExec(node, SUCCESS);
    await client.done;
    const [file = ""] = (await gateway?.recordings()) ?? [];
    const recorded = play(readFileSync(file, "utf8"));
    const seconds = recorded.events.map(([interval]) => interval);
    expect(Math.min(...seconds)).toBeGreaterThanOrEqual(0);
    expect(seconds.reduce((sum, each) => sum + each, 0)).toBeLessThan(
      (performance.now() - startMs) / 1_000 + 5,
    );
    expect(recorded.shown).toBe("before after\n");
    expect(await verifyRecording(file, await readPublicKeys([], folder))).toMatchObject({
      verdict: "unchanged",
    });
    const { head } = recorded.comments.at(-1) as { head: { startedAt: string; endedAt: string } };
    const lastedMs = Date.parse(head.endedAt) - Date.parse(head.startedAt);
    expect(Math.round(lastedMs / HOUR_MS)).toBe(0);
    expect((await new RecordingIndex(folder).list()).recordings).toHaveLength(1);
  });
});

describe("output beyond the bound", () => {
  it("is counted, and not recorded", async () => {
    const { client, node } = await start({ ...refuse, maxOutputBytes: "64Ki" });
    node.streams.get("stdout")?.write(Buffer.alloc(MIB, "y"));
    await expect
      .poll(() => client.messages.reduce((sum, { byteLength }) => sum + byteLength - 1, 0))
      .toBe(MIB + 7);
    endExec(node, SUCCESS);
    const { stdout } = await client.done;
    const recorded = play((await gateway?.recording()) ?? "");
    expect(recorded.stdout).toEqual(stdout.subarray(0, 64 * 1024));
    expect(recorded.of("m")).toEqual([
      `output beyond the bound of the recording: ${MIB + 7 - 64 * 1024} bytes`,
    ]);
    expect(recorded.comments.at(-1)).toMatchObject({ head: { bytes: MIB + 7, gaps: 0 } });
  });
});

describe("a recording that cannot begin", () => {
  it.each([
    ["refuse", "503"],
    ["continue", "101"],
  ])("recordOnFailure %s: %s", async (recordOnFailure, answer) => {
    kubelet = new ScriptedKubelet({
      onStream: (name, _stream, session) => {
        if (name === "stdout") endExec(session, SUCCESS);
      },
    });
    const recording = { rules: [{ name: "all", recordOnFailure }], minFreeBytes: "1Ti" };
    gateway = await RecordedGateway.start({ kubeletPort: await kubelet.listen(), recording });
    const client = new V5Client(gateway.authority, "stdout=true&command=x");
    if (answer === "503") await expect(client.opened).rejects.toThrow("503");
    else await expect(client.done).resolves.toMatchObject({ closeCode: 1000 });
    expect(kubelet.requests).toHaveLength(answer === "503" ? 0 : 1);
    expect(await gateway.metric("sluice_recordings_not_begun_total")).toEqual([
      "sluice_recordings_not_begun_total 1",
    ]);
    expect(filesIn(gateway.folder, ".cast")).toEqual([]);
  });
});
