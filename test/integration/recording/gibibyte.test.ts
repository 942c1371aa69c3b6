import { createHash, generateKeyPairSync } from "node:crypto";
import { expect, it } from "vitest";
import { RecordingCheck } from "../../../src/recording/format/check-recording.ts";
import { RecordingFile } from "../../../src/recording/thread/recording-file.ts";
import { SessionWriter } from "../../../src/recording/thread/session-writer.ts";
import { NullDisk } from "../../support/recording/null-disk.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const { privateKey } = generateKeyPairSync("ed25519");
const GIBIBYTE = 1024 ** 3;
/** Not a multiple of a character's length, so that parts end within characters. */
const PART_BYTES = 32 * 1024 + 3;
/** What the encoder, the check and garbage that V8 has not collected yet may take. */
const MOST_MEMORY = 256 * 1024 * 1024;

/** Checks what is appended, line by line, and digests the text of the output. Keeps no lines. */
class CheckingDisk extends NullDisk {
  readonly check = new RecordingCheck();
  readonly output = createHash("sha256");
  #rest = Buffer.alloc(0);
  write(_handle: number, bytes: Uint8Array): void {
    const text = Buffer.concat([this.#rest, bytes]);
    let from = 0;
    for (let end = text.indexOf(10); end !== -1; end = text.indexOf(10, from)) {
      const line = text.subarray(from, end);
      this.check.line(line);
      if (line[0] === 0x5b) this.#event(JSON.parse(line.toString()));
      from = end + 1;
    }
    this.#rest = Buffer.from(text.subarray(from));
  }
  #event([, code, data]: [number, string, string]): void {
    if (code !== "x") expect(code).toBe("o");
    if (code === "o") this.output.update(data);
  }
  end() {
    return this.check.end(this.#rest);
  }
}

it("1 GiB of UTF-8 in parts that end within characters is recorded exactly, in little memory", () => {
  const disk = new CheckingDisk();
  const begun = { facts: FACTS, maxOutputBytes: GIBIBYTE };
  const writer = new SessionWriter(new RecordingFile(disk, "x", "x.part"), begun, privateKey);
  const characters = Array.from({ length: 50_000 }, (_, index) =>
    String.fromCodePoint(0x1f300 + (index % 700)),
  );
  const pattern = Buffer.from(
    characters.map((each, index) => `${index}\u001b[1m "\\ \u00e4\u2603${each}\r\n`).join(""),
  );
  const twice = Buffer.concat([pattern, pattern]);
  const total = Math.ceil(GIBIBYTE / pattern.byteLength) * pattern.byteLength;
  const sent = createHash("sha256");
  const before = process.memoryUsage().rss;
  let most = 0;
  let timeMs = 0;
  for (let at = 0; at < total; at += PART_BYTES) {
    const from = at % pattern.byteLength;
    const part = twice.subarray(from, from + Math.min(PART_BYTES, total - at));
    sent.update(part);
    timeMs = (at / GIBIBYTE) * 10_000;
    writer.output("stdout", timeMs, part);
    expect(writer.flush(timeMs)).toBeUndefined();
    if (at % (64 * PART_BYTES) === 0) most = Math.max(most, process.memoryUsage().rss - before);
  }
  writer.end(timeMs, Date.UTC(2026, 0, 1), "completed", 0);
  expect(writer.flush(timeMs)).toBeUndefined();
  expect(disk.end()).toMatchObject({ verdict: "unchanged", head: { bytes: total, gaps: 0 } });
  expect(disk.output.digest("hex")).toBe(sent.digest("hex"));
  expect(most).toBeLessThan(MOST_MEMORY);
});
