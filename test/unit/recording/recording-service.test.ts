import { generateKeyPairSync } from "node:crypto";
import { expect, it } from "vitest";
import type { Disk } from "../../../src/recording/thread/disk.ts";
import { RecordingService } from "../../../src/recording/thread/recording-service.ts";
import { Slab } from "../../../src/recording/thread/slab.ts";
import type { FromThread } from "../../../src/recording/thread/thread-messages.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

// The same value as in the service.
const TICKS_BETWEEN_HEADS = 60;

const signingKey = generateKeyPairSync("ed25519")
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

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
  const input = { folder: "/f", writer: "w", signingKey, retention: { maxAgeMs: 0, maxTotalBytes: 0 } };
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
  const input = { folder: "/f", writer: "w", signingKey, retention: { maxAgeMs: 0, maxTotalBytes: 0 } };
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
  // No writer has the recording then, so the next search finishes it.
  const left = [expect.stringMatching(/^rename \/f\/a\.cast\.EIO-[-0-9a-f]{36}\.part$/)];
  expect(calls).toEqual(["write", "sync", ...(fault === "sync" ? left : named), "ended"]);
  expect(answers.at(-1)).toMatchObject(fault === "" ? { finished: { gaps: 0 } } : { problem: "EIO" });
});
