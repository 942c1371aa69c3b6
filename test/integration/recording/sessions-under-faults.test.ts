import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { type Played, play } from "../../support/recording/played.ts";
import { filesIn, RecordedGateway } from "../../support/recording/recorded-gateway.ts";
import { endExec, type KubeletSession, ScriptedKubelet, SUCCESS } from "../../support/scripted-kubelet.ts";
import { Sluice } from "../../support/sluice.ts";
import { V5Client, type V5Result } from "../../support/v5-client.ts";

/** Releases are tested with SLUICE_RECORDED_SESSIONS=10000, which takes some minutes. */
const SESSIONS = Number(process.env.SLUICE_RECORDED_SESSIONS ?? 100);
const AT_ONCE = 20;
const program = pathToFileURL(path.resolve("test/support/recording/faulty-disk-thread.mjs"));

let folder = "";
let gateway: RecordedGateway | undefined;
let kubelet: ScriptedKubelet | undefined;
afterEach(async () => {
  rmSync(path.join(folder, "fault"), { force: true });
  await gateway?.stop();
  await kubelet?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A command that prints a few hundred lines, in pieces with pauses: the faults change meanwhile. */
function print(session: KubeletSession, index: number): void {
  const stdout = session.streams.get("stdout");
  let piece = 0;
  const next = (): void => {
    if (session.socket.destroyed) return;
    const lines = Array.from({ length: 40 }, (_, line) => `session ${index} piece ${piece} line ${line}\n`);
    stdout?.write(Buffer.from(lines.join("")));
    piece += 1;
    if (piece < 8) setTimeout(next, 5 + ((index * 7 + piece * 13) % 40));
    else endExec(session, SUCCESS);
  };
  next();
}

/** The ends of recordings that a search finished: what the thread or the disk lost is not in them. */
const UNFINISHED = ["crash", "write-failed"];

/** Fails unless each delivered byte is in the recording, or in a gap of it that has its digest. */
function requireMarked(recorded: Played, delivered: Buffer) {
  let at = 0;
  let gapBytes = 0;
  for (const [, code, data] of recorded.events) {
    if (code === "o") {
      const bytes = Buffer.from(data, "utf8");
      const expected = delivered.subarray(at, at + bytes.byteLength);
      expect(bytes.subarray(0, expected.byteLength).equals(expected)).toBe(true);
      at += bytes.byteLength;
    } else if (code === "g") {
      const { bytes, sha256 } = JSON.parse(data) as { bytes: number; sha256: string };
      const part = delivered.subarray(at, at + bytes);
      if (part.byteLength === bytes) expect(createHash("sha256").update(part).digest("base64")).toBe(sha256);
      at += bytes;
      gapBytes += bytes;
    }
  }
  const { head } = recorded.comments.at(-1) as { head: { end: string } };
  if (!UNFINISHED.includes(head.end)) expect(at).toBeGreaterThanOrEqual(delivered.byteLength);
  return { recordedBytes: at - gapBytes, gapBytes, end: head.end };
}

it(
  `each delivered byte of ${SESSIONS} sessions is recorded or marked, whatever the disk and the thread do`,
  async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-faults-"));
    kubelet = new ScriptedKubelet({
      onStream: (name, _stream, session) => {
        const command = new URL(`http://node${session.request.url}`).searchParams.get("command") ?? "0";
        if (name === "stdout") print(session, Number(command));
      },
    });
    const may = { name: "may", match: { stdin: true }, recordOnFailure: "continue" };
    gateway = await RecordedGateway.start({
      folder,
      program,
      kubeletPort: await kubelet.listen(),
      recording: { rules: [may, { name: "must" }], maxHold: "500ms", maxQueuedBytesPerSession: "256Ki" },
    });
    const own = gateway;
    await eventually("the recorder's thread runs", () => filesIn(folder, ".json").length > 0);
    const faults = ["full", "", "", "full", "", "hang", "", "die", "", ""];
    let turn = 0;
    const timer = setInterval(() => {
      const fault = faults[turn++ % faults.length] ?? "";
      const file = path.join(folder, "fault");
      if (fault === "") rmSync(file, { force: true });
      else writeFileSync(file, fault);
    }, 60);
    const results = new Map<number, V5Result>();
    let refused = 0;
    let next = 0;
    const one = async (): Promise<void> => {
      while (next < SESSIONS) {
        const index = next++;
        const query = `stdout=true&command=${index}${index % 2 === 0 ? "&stdin=true" : ""}`;
        const client = new V5Client(own.authority, query);
        const isOpen = await client.opened.then(
          () => true,
          () => false,
        );
        if (isOpen) results.set(index, await client.done);
        else refused += 1;
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, one));
    } finally {
      clearInterval(timer);
      rmSync(path.join(folder, "fault"), { force: true });
    }
    await own.shutDown();
    const [notBegun, failed] = await Promise.all(
      ["sluice_recordings_not_begun_total", 'sluice_recordings_total{result="failed"}'].map(async (name) =>
        Number((await own.metric(name))[0]?.split(" ").at(-1) ?? 0),
      ),
    );
    if (notBegun === undefined || failed === undefined) throw new Error("there are two");
    await finishLeft();

    const recordings = new Map(
      filesIn(folder, ".cast").map((file) => {
        const played = play(readFileSync(file, "utf8"));
        return [Number(played.header.command), played] as const;
      }),
    );
    let [gaps, cut, unrecorded] = [0, 0, 0];
    /** Sessions that must be recorded and have a success, and what is wrong with them. */
    const wrong: string[] = [];
    for (const [index, { stdout, status }] of results) {
      const mustBeRecorded = index % 2 === 1 && status.includes('"Success"');
      const recorded = recordings.get(index);
      if (recorded === undefined) {
        // The thread died before it wrote anything, or the session may run without a recording.
        if (mustBeRecorded) wrong.push(`${index} has no recording`);
        unrecorded += 1;
        continue;
      }
      const { recordedBytes, gapBytes, end } = requireMarked(recorded, stdout);
      if (gapBytes > 0) gaps += 1;
      if (UNFINISHED.includes(end)) cut += 1;
      if (mustBeRecorded && gapBytes > 0) wrong.push(`${index} has a gap`);
      if (mustBeRecorded && recordedBytes < stdout.byteLength) wrong.push(`${index} is recorded in part`);
    }
    expect(wrong).toEqual([]);
    expect(results.size + refused).toBe(SESSIONS);
    // Its metric, log and audit event say so.
    expect(notBegun + failed).toBeGreaterThanOrEqual(refused + unrecorded);
    expect([results.size > SESSIONS / 3, gaps + cut > 0]).toEqual([true, true]);
    const { exitCode } = await new Sluice({}).run(["recordings", "verify", folder]);
    expect(exitCode).toBe(0);
    process.stdout.write(
      `${results.size} of ${SESSIONS} sessions ran; gaps in ${gaps}, cut with the thread or by the disk ${cut}, unrecorded ${unrecorded}\n`,
    );
  },
  60_000 + SESSIONS * 100,
);

/** Another start finishes what a dead thread left. */
async function finishLeft(): Promise<void> {
  const later = await RecordedGateway.start({ folder });
  const isFinished = (): boolean => filesIn(folder, ".part").length === 0;
  await eventually("no part is left", isFinished, { timeoutMs: 30_000 + SESSIONS * 20 });
  await later.stop();
}
