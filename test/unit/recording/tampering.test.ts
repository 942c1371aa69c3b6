import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventLines, headerLine } from "../../../src/recording/format/asciicast.ts";
import { LineChain, seedLine } from "../../../src/recording/format/chain.ts";
import { type CheckedRecording, RecordingCheck } from "../../../src/recording/format/check-recording.ts";
import { headLine, isSignedBy, keyNameOf } from "../../../src/recording/format/signed-head.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");

/** A recording of three chunks. */
function recorded(): string[] {
  const seed = Buffer.alloc(32, 7);
  const chain = new LineChain(seed);
  const events = new EventLines();
  const header = headerLine(FACTS, { columns: 80, rows: 24 });
  const lines = [header, seedLine(seed)];
  chain.begin(header);
  for (let index = 0; index < 30; index++) {
    const line = events.line(index * 100, "o", `line ${index} \u00e4\ufffd\r\n`);
    chain.add(line);
    lines.push(line);
    if (index % 10 === 9) lines.push(chain.close(Date.UTC(2026, 0, 1) + index));
  }
  const head = {
    bytes: 300,
    chunks: 3,
    end: "completed",
    endedAt: "2026-01-01T00:00:03.000Z",
    gaps: 0,
    hash: chain.hash,
    key: keyNameOf(privateKey),
    lines: 30,
    session: FACTS.session,
    startedAt: FACTS.startedAt,
  };
  lines.push(headLine(head, privateKey));
  return lines;
}

function check(file: Buffer): CheckedRecording {
  const checking = new RecordingCheck();
  let from = 0;
  for (let end = file.indexOf(10); end !== -1; end = file.indexOf(10, from)) {
    checking.line(file.subarray(from, end));
    from = end + 1;
  }
  return checking.end(file.subarray(from));
}

/** Whether verification says that this is the recording, as it was signed. */
function isGenuine(file: Buffer): boolean {
  const { verdict, head, signature } = check(file);
  return verdict === "unchanged" && head !== undefined && isSignedBy(head, signature ?? "", publicKey);
}

const LINES = recorded();
const FILE = Buffer.from(`${LINES.join("\n")}\n`);
const fileOf = (lines: readonly string[]): Buffer => Buffer.from(`${lines.join("\n")}\n`);
/** Of each kind. */
const RUNS = { numRuns: 1_000 };

describe("a recording", () => {
  it("is genuine as it was written", () => {
    expect(isGenuine(FILE)).toBe(true);
  });

  it("is not genuine with any bit flipped, 1,000 times", () => {
    fc.assert(
      fc.property(fc.nat(FILE.byteLength - 1), fc.nat(7), (at, bit) => {
        const flipped = Buffer.from(FILE);
        flipped[at] = (flipped[at] as number) ^ (1 << bit);
        expect(isGenuine(flipped)).toBe(false);
      }),
      RUNS,
    );
  });

  it("is not genuine when it is cut at any byte, 1,000 times", () => {
    fc.assert(
      fc.property(fc.nat(FILE.byteLength - 1), (length) => {
        const { verdict } = check(FILE.subarray(0, length));
        expect(verdict).not.toBe("unchanged");
      }),
      RUNS,
    );
  });

  it("is not genuine with lines missing, reordered, repeated or added, 1,000 times", () => {
    const index = fc.nat(LINES.length - 1);
    fc.assert(
      fc.property(index, index, fc.constantFrom("remove", "swap", "repeat", "add"), (a, b, how) => {
        const lines = [...LINES];
        if (how === "remove") lines.splice(Math.min(a, b), Math.abs(a - b) + 1);
        else if (how === "repeat") lines.splice(b, 0, LINES[a] as string);
        else if (how === "add") lines.splice(a, 0, '[0.000, "o", "added"]');
        else {
          fc.pre(a !== b);
          [lines[a], lines[b]] = [lines[b] as string, lines[a] as string];
        }
        expect(isGenuine(fileOf(lines))).toBe(false);
      }),
      RUNS,
    );
  });

  it("that was changed says in which chunk", () => {
    const changed = (line: number): CheckedRecording => {
      const lines = [...LINES];
      lines[line] = (lines[line] as string).replace("line", "lime");
      return check(fileOf(lines));
    };
    expect(changed(5)).toMatchObject({ verdict: "changed", chunk: 1 });
    expect(changed(2 + 15)).toMatchObject({ verdict: "changed", chunk: 2 });
  });

  it("without its end is truncated, not changed", () => {
    expect(check(fileOf(LINES.slice(0, -1)))).toMatchObject({ verdict: "truncated", chunk: 3 });
  });
});
