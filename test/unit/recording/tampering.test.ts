import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventLines, headerLine } from "../../../src/recording/format/asciicast.ts";
import {
  COMMENT,
  digestLine,
  digestOf,
  EXPLICIT_SALTS,
  LineChain,
  saltLine,
  saltOf,
  seedLine,
} from "../../../src/recording/format/chain.ts";
import { type CheckedRecording, RecordingCheck } from "../../../src/recording/format/check-recording.ts";
import { headLine, isSignedBy, keyNameOf } from "../../../src/recording/format/signed-head.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");

const seed = Buffer.alloc(32, 7);

/** A recording of three chunks. */
function recorded(): string[] {
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

/** The recording with a salt after each line, as an export has it; `change` may replace a line and its salt. */
function exported(change: (line: string, salt: Buffer, index: number) => string[] | undefined): Buffer {
  let index = -1;
  const lines = LINES.flatMap((line) => {
    if (line.startsWith('# sluice {"seed"')) return [];
    if (line.startsWith(COMMENT)) return [line];
    index += 1;
    const salt = saltOf(seed, index);
    const both = change(line, salt, index) ?? [line, saltLine(salt)];
    return index === 0 ? [both[0] as string, EXPLICIT_SALTS, ...both.slice(1)] : both;
  });
  return fileOf(lines);
}

describe("a redacted recording", () => {
  const original = (line: string, salt: Buffer): string => digestLine(digestOf(salt, line));
  const eventAs = (event: string) =>
    exported((line, salt, index) => (index === 5 ? [event, original(line, salt)] : undefined));
  const headerAs = (header: (line: string) => string) =>
    exported((line, salt, index) => (index === 0 ? [header(line), original(line, salt)] : undefined));
  const withoutCommand = (line: string): string => {
    const { command: _, ...header } = JSON.parse(line);
    return JSON.stringify({ ...header, sluice: { ...header.sluice, command: [] } });
  };

  it("is genuine as an export writes it", () => {
    expect(isGenuine(exported(() => undefined))).toBe(true);
    expect(isGenuine(eventAs('[0.100, "m", "redacted"]'))).toBe(true);
    const header = headerAs(withoutCommand);
    expect(isGenuine(header)).toBe(true);
    expect(check(header)).toMatchObject({ redacted: 1, isHeaderRedacted: true });
  });

  it.each([
    ['[0.100, "o", "forged"]'],
    ['[0.100, "m", "redacted by ana"]'],
    ['[0.100, "m", "redacted"] '],
    ["forged"],
  ])("is not genuine with other text in place of a line: %s", (event) => {
    expect(isGenuine(eventAs(event))).toBe(false);
  });

  it("is not genuine with another command, session or start in place of its header", () => {
    expect(isGenuine(headerAs((line) => line))).toBe(false);
    expect(
      isGenuine(headerAs((line) => withoutCommand(line).replace('"command":[]', '"command":["id"]'))),
    ).toBe(false);
    for (const field of ["session", "startedAt"] as const) {
      const forged = (line: string) => withoutCommand(line).replace(FACTS[field], "2026-01-01T00:00:00.000Z");
      expect(isGenuine(headerAs(forged))).toBe(false);
    }
  });

  it("is not genuine with the start of a line moved into its salt", () => {
    for (const length of [1, 10, 20]) {
      const moved = exported((line, salt, index) => {
        if (index !== 5) return undefined;
        return [line.slice(length), saltLine(Buffer.concat([salt, Buffer.from(line.slice(0, length))]))];
      });
      expect(isGenuine(moved)).toBe(false);
    }
  });
});
