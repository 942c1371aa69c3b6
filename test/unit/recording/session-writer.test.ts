import { createHash, generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { RecordingFile } from "../../../src/recording/thread/recording-file.ts";
import { SessionWriter } from "../../../src/recording/thread/session-writer.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { NullDisk } from "../../support/recording/null-disk.ts";
import { play } from "../../support/recording/played.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const MAX_BINARY_BYTES = fixedBound("src/recording/thread/session-writer.ts", "MAX_BINARY_BYTES");

const { privateKey } = generateKeyPairSync("ed25519");

/** A disk in memory; `isFull` fails every write. */
class MemoryDisk extends NullDisk {
  isFull = false;
  bytes = Buffer.alloc(0);
  write(_handle: number, bytes: Uint8Array, position: number): void {
    if (this.isFull) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
    const end = Math.max(this.bytes.byteLength, position + bytes.byteLength);
    const next = Buffer.alloc(end);
    this.bytes.copy(next);
    next.set(bytes, position);
    this.bytes = next;
  }
}

function start() {
  const disk = new MemoryDisk();
  const writer = new SessionWriter(
    new RecordingFile(disk, "x", "x.part"),
    { facts: FACTS, maxOutputBytes: 1024 },
    privateKey,
  );
  writer.flush(0);
  const end = (timeMs: number, cause = "completed") => {
    writer.end(timeMs, Date.UTC(2026, 0, 1), cause, cause === "completed" ? 0 : undefined);
    expect(writer.flush(timeMs)).toBeUndefined();
    return play(disk.bytes.toString());
  };
  return { disk, writer, end };
}

describe("a session's writer", () => {
  it("puts the first size into the header, and later ones into events", () => {
    const { writer, end } = start();
    writer.resize(5, { columns: 132, rows: 43 });
    writer.output("stdout", 6, Buffer.from("$ "));
    writer.resize(500, { columns: 100, rows: 30 });
    const { header, of } = end(600);
    expect(header.term).toEqual({ cols: 132, rows: 43 });
    expect(of("r")).toEqual(["100x30"]);
  });

  it("writes a late size as an event", () => {
    const { writer, end } = start();
    writer.resize(1_001, { columns: 132, rows: 43 });
    const { header, of } = end(1_100);
    expect([header.term, of("r")]).toEqual([{ cols: 80, rows: 24 }, ["132x43"]]);
  });

  it("ends as long after its start as it lasted, though the clock was set back", () => {
    const { head } = start().end(1_500.2).comments.at(-1) as { head: object };
    expect(head).toMatchObject({ startedAt: FACTS.startedAt, endedAt: "2026-11-22T20:00:01.750Z" });
  });

  it("keeps no view of the output that it takes", () => {
    const { writer, end } = start();
    for (const text of ["first ", "\u00e4".repeat(700), " last \ud83d\ude00"]) {
      // The last bytes wait for the rest of their character.
      for (const part of [Buffer.from(text).subarray(0, -1), Buffer.from(text).subarray(-1)]) {
        const lent = Uint8Array.from(part);
        writer.output("stdout", 1, lent);
        lent.fill(0xdd);
      }
    }
    expect(end(2).of("o").join("")).toBe(`first ${"\u00e4".repeat(700)} last \ud83d\ude00`);
  });

  it("joins output of one stream and millisecond", () => {
    const { writer, end } = start();
    for (const [stream, timeMs, text] of [
      ["stdout", 1.1, "a"],
      ["stdout", 1.4, "b"],
      ["stderr", 1.4, "c"],
      ["stdout", 2, "d"],
    ] as const)
      writer.output(stream, timeMs, Buffer.from(text));
    const { events, stdout, stderr } = end(3);
    expect(events.map(([, code, data]) => code + data)).toEqual([
      "oab",
      "sstderr",
      "oc",
      "sstdout",
      "od",
      "x0",
    ]);
    expect([stdout.toString(), stderr.toString()]).toEqual(["abd", "c"]);
  });

  it("keeps binary output exactly up to its bound, then length and digest", () => {
    const { writer, end } = start();
    const part = Buffer.alloc(64 * 1024, 0xff);
    const parts = MAX_BINARY_BYTES / part.byteLength + 1;
    for (let index = 0; index < parts; index++) writer.output("stdout", index, part);
    const { stdout, of } = end(100);
    expect(stdout.byteLength).toBe(MAX_BINARY_BYTES);
    const sha256 = createHash("sha256").update(part).digest("base64");
    expect(of("d").map((data) => JSON.parse(data))).toEqual([{ bytes: part.byteLength, sha256 }]);
  });

  it("has no exit code for a session that was cut short", () => {
    const { end } = start();
    const { events, comments } = end(10, "client-gone");
    expect(events.map(([, code, data]) => code + data)).toEqual(["mended: client-gone"]);
    expect(comments.at(-1)).toMatchObject({ head: { end: "client-gone" } });
  });

  it("writes later what a full disk refused, and marks output that came meanwhile", () => {
    const { disk, writer, end } = start();
    disk.isFull = true;
    writer.output("stdout", 1, Buffer.from("kept"));
    expect(writer.flush(1)).toMatchObject({ code: "ENOSPC" });
    writer.output("stdout", 2, Buffer.from("lost"));
    expect(writer.flush(2)).toBeDefined();
    disk.isFull = false;
    expect(writer.flush(1_001)).toBeUndefined();
    writer.output("stdout", 1_002, Buffer.from("after"));
    const { stdout, of, comments } = end(1_003);
    expect(stdout.toString()).toBe("keptafter");
    const sha256 = createHash("sha256").update("lost").digest("base64");
    expect(of("g").map((data) => JSON.parse(data))).toEqual([{ bytes: 4, seconds: 1, sha256 }]);
    expect(comments.at(-1)).toMatchObject({ head: { bytes: 13, gaps: 1 } });
  });

  it("uses the memory of a long line again only when the line is written", () => {
    const [one, other] = [start(), start()];
    const part = (letter: string): Buffer => Buffer.alloc(32 * 1024, `${letter}"\n`);
    one.disk.isFull = true;
    for (const [{ writer }, letter] of [
      [one, "a"],
      [other, "b"],
      [other, "c"],
      [other, "d"],
    ] as const) {
      writer.output("stdout", 1, part(letter));
      writer.flush(1);
    }
    one.disk.isFull = false;
    one.writer.output("stdout", 2, Buffer.from("lost"));
    expect(one.writer.flush(2)).toBeUndefined();
    expect(other.end(3).stdout).toEqual(Buffer.concat(["b", "c", "d"].map(part)));
    expect(one.end(3).stdout).toEqual(part("a"));
  });
});
