import { parseLogTime } from "@sluice/client/internal/api/pod-log-options";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PodLogOptions } from "../../../../../packages/client/src/api/pod-log-options.ts";
import { LogFormatter } from "../../../../../src/legs/kubelet/logs/log-formatter.ts";

type Options = Partial<Pick<PodLogOptions, "since" | "timestamps" | "stream" | "limitBytes">>;

function format(file: string | Uint8Array, options: Options = {}, chunkBytes = 1 << 20): string {
  const formatter = new LogFormatter({
    since: undefined,
    timestamps: false,
    stream: undefined,
    limitBytes: undefined,
    ...options,
  });
  const bytes = Buffer.from(file);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes)
    parts.push(formatter.push(bytes.subarray(at, at + chunkBytes)));
  return Buffer.concat(parts).toString("latin1");
}

const T1 = "2026-01-02T03:04:05.1Z";
const T2 = "2026-01-02T03:04:06.000000002+02:00";

describe("LogFormatter", () => {
  it.each<[name: string, file: string, out: string, options?: Options]>([
    ["whole lines", `${T1} stdout F one\n${T1} stderr F two\n`, "one\ntwo\n"],
    ["an empty line", `${T1} stdout F \n`, "\n"],
    ["a line without the blank behind its tag", `${T1} stdout F\n`, "\n"],
    ["parts of a line become one", `${T1} stdout P on\n${T1} stdout P e\n${T1} stdout F !\n`, "one!\n"],
    ["a part without its end", `${T1} stdout P half\n`, "half"],
    ["further tags", `${T1} stdout F:x:y tagged\n`, "tagged\n"],
    ["blanks and carriage returns in the content", `${T1} stdout F  a  b\r\n`, " a  b\r\n"],
    ["a last line that is still being written", `${T1} stdout F so far`, "so far"],
    [
      "timestamps, with nine digits and their zone",
      `${T2} stdout F x\n${T1} stdout F y\n`,
      "2026-01-02T03:04:06.000000002+02:00 x\n2026-01-02T03:04:05.100000000Z y\n",
      { timestamps: true },
    ],
    [
      "one timestamp for all parts of a line",
      `${T1} stdout P a\n${T2} stdout F b\n${T1} stdout F c\n`,
      "2026-01-02T03:04:05.100000000Z ab\n2026-01-02T03:04:05.100000000Z c\n",
      { timestamps: true },
    ],
    ["one stream", `${T1} stdout F out\n${T1} stderr F err\n`, "err\n", { stream: "stderr" }],
    [
      "since, to the nanosecond",
      "2026-01-02T03:04:05.000000001Z stdout F a\n2026-01-02T03:04:05.000000002Z stdout F b\n",
      "b\n",
      { since: { seconds: Date.parse("2026-01-02T03:04:05Z") / 1_000, nanoseconds: 2 } },
    ],
    [
      "since, across zones",
      `${T2} stdout F early\n${T1} stdout F late\n`,
      "late\n",
      { since: { seconds: Date.parse("2026-01-02T02:00:00Z") / 1_000, nanoseconds: 0 } },
    ],
    ["a limit, to the byte", `${T1} stdout F abcdef\n`, "abc", { limitBytes: 3 }],
    ["a limit across lines", `${T1} stdout F ab\n${T1} stdout F cd\n`, "ab\nc", { limitBytes: 4 }],
  ])("%s", (_name, file, out, options) => {
    expect(format(file, options)).toBe(out);
    expect(format(file, options, 1)).toBe(out);
  });

  it.each([
    ["no head at all", "hello\n"],
    ["a wrong stream", `${T1} stdboth F x\n`],
    ["a wrong tag", `${T1} stdout X x\n`],
    ["a wrong time", "yesterday stdout F x\n"],
    ["a time that does not exist", "2026-13-45T99:00:00Z stdout F x\n"],
    ["docker's JSON", '{"log":"x\\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}\n'],
    ["an empty line", "\n"],
    ["zero bytes", "\0\0\0\0\n"],
    ["a head that does not end", `${"x".repeat(100_000)}\n`],
    ["blanks only", `${" ".repeat(1_000)}\n`],
  ])("leaves out a line that no runtime wrote, and goes on: %s", (_name, garbage) => {
    const file = `${T1} stdout F before\n${garbage}${T1} stdout F after\n`;
    expect(format(file)).toBe("before\nafter\n");
    expect(format(file, {}, 7)).toBe("before\nafter\n");
  });

  it("passes a long line through in the parts in which it is read", () => {
    const formatter = new LogFormatter({
      since: undefined,
      timestamps: false,
      stream: undefined,
      limitBytes: undefined,
    });
    formatter.push(Buffer.from(`${T1} stdout F `));
    for (let round = 0; round < 100; round++)
      expect(formatter.push(Buffer.alloc(1_000, "x"))).toHaveLength(1_000);
    expect(Buffer.from(formatter.push(Buffer.from("\n"))).toString()).toBe("\n");
  });

  it("holds what random bytes, randomly cut, come to: never more than was given, never a crash", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), fc.integer({ min: 1, max: 300 }), (bytes, cut) => {
        expect(format(bytes, {}, cut)).toBe(format(bytes));
        expect(format(bytes).length).toBeLessThanOrEqual(bytes.length);
      }),
    );
  });
});

describe("log times", () => {
  it.each([
    ["2026-01-02T03:04:05Z", 0],
    ["2026-01-02T03:04:05.000000001Z", 1],
    ["2026-01-02T03:04:05.1Z", 100_000_000],
    ["2026-01-02T05:04:05.123456789+02:00", 123_456_789],
  ])("%s", (text, nanoseconds) => {
    expect(parseLogTime(text)).toEqual({ seconds: 1_767_323_045, nanoseconds });
  });

  it.each([
    "",
    "now",
    "2026-01-02",
    "2026-01-02 03:04:05Z",
    "2026-01-02T03:04:05",
    "2026-01-02T03:04:05.1234567890Z",
  ])("%j is none", (text) => {
    expect(parseLogTime(text)).toBeUndefined();
  });
});
