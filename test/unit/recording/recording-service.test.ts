import { generateKeyPairSync } from "node:crypto";
import { expect, it, vi } from "vitest";
import type { Disk } from "../../../src/recording/thread/disk.ts";
import { RecordingService, TICKS_BETWEEN_HEADS } from "../../../src/recording/thread/recording-service.ts";
import { SLAB_BYTES, Slab, TakenSlabs } from "../../../src/recording/thread/slab.ts";
import type { FromThread } from "../../../src/recording/thread/thread-messages.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const signingKey = generateKeyPairSync("ed25519")
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
const input = {
  folder: "/f",
  writer: "w",
  signingKey,
  retention: { maxAgeMs: 0, maxTotalBytes: 0 },
  taken: new TakenSlabs().numbers,
};

it("a running recording's chain goes to the audit log each minute if it has new lines", () => {
  let text = "";
  const disk: Disk = {
    create: () => 1,
    write: (_handle, bytes) => {
      text += Buffer.from(bytes).toString();
    },
    sync: (_handle, done) => done(null),
    truncate: () => {},
    close: () => {},
    rename: () => {},
    syncNames: (_file, done) => done(null),
    remove: () => {},
  };
  const answers: FromThread[] = [];
  const reserve = { release: () => {}, renew: () => {} };
  const service = new RecordingService(input, (message) => void answers.push(message), reserve, disk);
  service.receive({ kind: "open", handle: 7, file: "a.cast" });
  service.receive({ kind: "begin", handle: 7, facts: FACTS, maxOutputBytes: 1_000 });
  const show = (): void => {
    const slab = new Slab();
    slab.add(7, "stdout", 10, Buffer.from("output\n"));
    service.receive({ kind: "slab", buffer: slab.buffer, used: slab.used });
  };
  const minute = (): FromThread[] => {
    for (let tick = 0; tick < TICKS_BETWEEN_HEADS; tick++) service.tick();
    return answers.splice(0).filter(({ kind }) => kind === "chunk");
  };
  show();
  const [first, ...more] = minute();
  expect(more).toEqual([]);
  expect(first).toMatchObject({ handle: 7, chunk: 1 });
  expect(text).toContain(`"hash":"${first?.kind === "chunk" ? first.hash : "none"}"`);
  expect(minute()).toEqual([]);
  show();
  expect(minute()).toMatchObject([{ chunk: 2 }]);
});

it.each([
  "",
  "sync",
  "syncNames",
])("a recording has ended when its bytes and its name are on the disk: %s", (fault) => {
  const calls: string[] = [];
  const settle = (call: string, done: (error: Error | null) => void): void => {
    calls.push(call);
    done(call === fault ? Object.assign(new Error("no"), { code: "EIO" }) : null);
  };
  const disk: Disk = {
    create: () => 1,
    write: () => void calls.push("write"),
    sync: (_handle, done) => settle("sync", done),
    truncate: () => {},
    close: () => {},
    rename: (_from, to) => void calls.push(`rename ${to}`),
    syncNames: (_file, done) => settle("syncNames", done),
    remove: () => {},
  };
  const answers: FromThread[] = [];
  const reserve = { release: () => {}, renew: () => {} };
  const answer = (message: FromThread): void => {
    answers.push(message);
    calls.push(message.kind);
  };
  const service = new RecordingService(input, answer, reserve, disk);
  service.receive({ kind: "open", handle: 7, file: "a.cast" });
  service.receive({ kind: "begin", handle: 7, facts: FACTS, maxOutputBytes: 1_000 });
  calls.splice(0);
  service.receive({ kind: "end", handle: 7, timeMs: 1, cause: "completed", exitCode: 0, countedBytes: 0 });
  const named = ["rename /f/a.cast", "syncNames"];
  expect(calls).toEqual(["write", "sync", ...(fault === "sync" ? [] : named), "ended"]);
  expect(answers.at(-1)).toMatchObject(fault === "" ? { finished: { gaps: 0 } } : { problem: "EIO" });
});

/** Cut at any byte: text, bytes that are not UTF-8, an archive's header with 600 bytes of a file. */
const OUTPUT = Buffer.concat([
  Buffer.from('täglich ☃ "\\\u0001 🙂\r\n'.repeat(20)),
  Buffer.from([0xff, 0xc3, 0x28]),
]);

it.each([
  ["text and bytes", FACTS, OUTPUT],
  [
    "echoed input",
    { ...FACTS, tty: true, record: "all" as const },
    Buffer.from("ls ☃\r\nfiles\r\n".repeat(9)),
  ],
  ["an archive", { ...FACTS, archive: "pack" as const }, Buffer.concat([archiveOf("ä☃.txt", 600), OUTPUT])],
  ["an unpacked archive", { ...FACTS, archive: "unpack" as const }, archiveOf("ä☃.txt", 600)],
])("what overwrites a slab that was taken reaches no file: %s", (_what, facts, bytes) => {
  const record = (isOverwritten: boolean): string[] => {
    const taken = new TakenSlabs();
    let text = "";
    let faults = 3;
    const write = (_handle: number, part: Uint8Array): void => {
      if (faults-- > 0) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
      text += Buffer.from(part).toString("latin1");
    };
    const none = (): void => {};
    const done = (_: unknown, settle: (error: null) => void): void => settle(null);
    const calls = { create: () => 1, truncate: none, close: none, rename: none, remove: none };
    const service = new RecordingService(
      { ...input, taken: taken.numbers },
      none,
      { release: none, renew: none },
      { ...calls, write, sync: done, syncNames: done },
    );
    service.receive({ kind: "open", handle: 7, file: "a.cast" });
    service.receive({ kind: "begin", handle: 7, facts, maxOutputBytes: 1_000 });
    const same = new Slab(new SharedArrayBuffer(SLAB_BYTES));
    for (const [index, byte] of bytes.entries()) {
      const slab = isOverwritten ? same : new Slab();
      slab.add(7, "input", 10 + index, Buffer.of(byte));
      slab.add(7, "stdout", 10 + index, Buffer.of(byte));
      service.receive({ kind: "slab", buffer: slab.buffer, used: slab.used });
      expect(taken.count).toBe(index + 1);
      if (isOverwritten) new Uint8Array(slab.buffer).fill(0x58, 0, slab.used);
      slab.reset();
      // The first writes fail, so that lines wait for a later one.
      while (faults > 0) service.tick();
    }
    service.receive({
      kind: "end",
      handle: 7,
      timeMs: 9_999,
      cause: "completed",
      exitCode: 0,
      countedBytes: 0,
    });
    return text.split("\n").filter((line) => line.startsWith("["));
  };
  // Gaps last no time.
  const now = vi.spyOn(performance, "now").mockReturnValue(0);
  const lines = record(false);
  expect(lines.length).toBeGreaterThan(1);
  expect(record(true)).toEqual(lines);
  now.mockRestore();
});

/** A tar archive of one file. */
function archiveOf(name: string, size: number): Buffer {
  const archive = Buffer.alloc(512 + Math.ceil(size / 512) * 512, 0);
  archive.write(name, 0);
  archive.write("0000644\0", 100);
  archive.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  archive.write("        0", 148);
  archive.write("ustar\x0000", 257);
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  archive.fill("content ", 512, 512 + size);
  return archive;
}
