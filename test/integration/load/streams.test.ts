import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { LINE_BYTES, LineSequence, SeededStream } from "../../../packages/lab/src/load/seeded-stream.ts";

describe("the seeded stream", () => {
  const stream = new SeededStream(7, 3);

  it("is the same for the same seed and session, whatever the pieces", () => {
    const whole = new SeededStream(7, 3).bytes(0, 3_000_000);
    expect(stream.bytes(1_048_570, 1_000).equals(whole.subarray(1_048_570, 1_049_570))).toBe(true);
    expect(stream.bytes(2_000_000, 1_000_000).equals(whole.subarray(2_000_000))).toBe(true);
    expect(stream.bytes(5, 2_500_000).equals(whole.subarray(5, 2_500_005))).toBe(true);
  });

  it("is another for another seed, and for another session", () => {
    expect(new SeededStream(8, 3).bytes(0, 64)).not.toEqual(stream.bytes(0, 64));
    expect(new SeededStream(7, 4).bytes(0, 64)).not.toEqual(stream.bytes(0, 64));
  });

  it.each([1, 64, 1_024, 32_768, 65_536, 1_048_576])("does not look like itself %i bytes later", (shift) => {
    expect(stream.firstWrong(0, stream.bytes(shift, 1_024))).not.toBe(-1);
  });

  it("tells the first wrong byte", () => {
    const part = Buffer.from(stream.bytes(100, 50));
    expect(stream.firstWrong(100, part)).toBe(-1);
    part[20] = (part[20] ?? 0) ^ 1;
    expect(stream.firstWrong(100, part)).toBe(120);
  });
});

describe("the line sequence", () => {
  it("is what its command prints", () => {
    const [command = "", ...args] = LineSequence.command(100_000);
    const printed = execFileSync(command, args);
    expect(printed.byteLength).toBe(Math.ceil(100_000 / LINE_BYTES) * LINE_BYTES);
    const lines = new LineSequence();
    for (let at = 0; at < printed.byteLength; at += 7_777) {
      expect(lines.firstWrong(at, printed.subarray(at, at + 7_777))).toBe(-1);
    }
    printed[50_000] = 0x58;
    expect(lines.firstWrong(49_000, printed.subarray(49_000, 60_000))).toBe(50_000);
  });

  it("notices a line that is missing or doubled", () => {
    const text = Buffer.from("1000000000\n1000000002\n");
    expect(new LineSequence().firstWrong(0, text)).toBe(20);
    expect(new LineSequence().firstWrong(11, Buffer.from("1000000000\n"))).toBe(20);
  });
});
