import headless from "@xterm/headless";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskControls } from "../../../src/observability/mask-controls.ts";
import { TerminalFilter, TextLines } from "../../../src/recording/format/terminal-filter.ts";

const filtered = (...parts: readonly string[]): string => {
  const filter = new TerminalFilter();
  return parts.map((part) => filter.push(part)).join("");
};

describe("what a replay passes on to the terminal", () => {
  it.each([
    "text \u00e4\u{1f600}\r\n\t\b",
    "\u001b[1;31mred\u001b[0m",
    "\u001b[38:2::1:2:3mcolour",
    "\u001b[2J\u001b[H\u001b[10;20H\u001b[K\u001b[3A",
    "\u001b[?1049h\u001b[?25l\u001b[?25h\u001b[?1049l",
    "\u001b(B\u001b)0\u001b7\u001b8\u001bM",
    "\u001b[4h\u001b[4l\u001b[1;24r",
  ])("is all of %j", (text) => {
    expect(filtered(text)).toBe(text);
  });

  it.each([
    ["a clipboard", "\u001b]52;c;ZWNobyBldmls\u0007"],
    ["a clipboard, ended by ST", "\u001b]52;c;ZWNobyBldmls\u001b\\"],
    ["a title", "\u001b]0;title\u0007"],
    ["a report of the title", "\u001b[21t"],
    ["a link", "\u001b]8;;https://evil.example\u0007"],
    ["a request for the device", "\u001b[c\u001b[>c\u001b[=c\u001bZ"],
    ["a request for the cursor", "\u001b[6n\u001b[?6n\u001b[5n"],
    ["a request for settings", "\u001bP$qm\u001b\\"],
    ["a request for a mode", "\u001b[?2004$p"],
    ["an answerback", "\u0005"],
    ["pasted text and reports of the mouse", "\u001b[?2004h\u001b[?1000h\u001b[?1003h\u001b[?1006h"],
    ["a mode beside a harmless one", "\u001b[?25;1000h"],
    ["keys that send other codes", "\u001b[>4;2m\u001b[>1u\u001b[?1h\u001b="],
    ["a reset", "\u001bc"],
    ["an image", "\u001bPq#0;2;0;0;0\u001b\\\u001b_Gf=100;AAAA\u001b\\"],
    ["8-bit controls", "\u009d52;c;ZXZpbA==\u009c\u009b6n\u0090$qm\u009c"],
    ["one that is broken off", "\u001b[6\u0018"],
    ["a privacy message", "\u001b^secret\u001b\\"],
    ["a request inside a passed-through string", "\u001bPtmux;\u001b\u001b]52;c;ZXZpbA==\u0007\u001b\\"],
    ["a request behind a broken character set", "\u001b(\u001b[6n\u001b(\u001b]52;c;ZXZpbA==\u0007"],
    ["an 8-bit request behind a broken character set", "\u001b(\u009b6n\u001b(\u0005"],
  ])("is nothing of %s", (_what, attack) => {
    expect(filtered(`before${attack}after`)).toBe("beforeafter");
  });

  it("is the same wherever the recording is cut", () => {
    const pieces = [
      "\u001b",
      "[",
      "]",
      "52;c;",
      "\u0007",
      "\\",
      "P",
      "6n",
      "31m",
      "x",
      "\u009b",
      "\u0018",
      "?",
      "h",
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 30 }), fc.nat(60), (parts, cut) => {
        const text = parts.join("");
        expect(filtered(text.slice(0, cut), text.slice(cut))).toBe(filtered(text));
      }),
    );
  });

  it("is text and whole harmless sequences", () => {
    const pieces = [..."\u001b()[]%07mn\u0005\u0007\u009b\u009d\n\u0018", "6n", "52;c;x", "?25h"];
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    const harmless = /\u001b(?:\[[\d;:]*[A-Zm]|\[\?25h|[()][ -/]*[0-~]|[78DEHM])/g;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 12 }), (parts) => {
        const rest = filtered(parts.join("")).replace(harmless, "");
        expect(maskControls(rest)).toBe(rest);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ["a title", "\u001b]0;title"],
    ["a request", "\u001b[6"],
    ["a character set", "\u001b("],
  ])("shows what a terminal shows after %s that another sequence cuts off", (_what, cut) => {
    expect(filtered(`${cut}\u001b[1mrm -rf /\u001b[0m`)).toBe("\u001b[1mrm -rf /\u001b[0m");
  });

  it("shows what follows a sequence that does not end", () => {
    expect(filtered(`\u001b]0;${"x".repeat(5_000)}visible`)).toMatch(/visible$/);
  });
});

describe("a recording as text", () => {
  const textOf = (...parts: readonly string[]): string => {
    const [filter, lines] = [new TerminalFilter(), new TextLines()];
    return parts.map((part) => lines.push(filter.push(part))).join("") + lines.end();
  };

  it.each([
    ["a carriage return that ends one event, its line feed in the next", ["one\r", "\ntwo"], "one\ntwo"],
    ["a key that was taken back", ["echo helo\b \blo"], "echo hello"],
    ["a letter that readline inserts", ["echo wrld\b\b\b\u001b[1@o\r\n"], "echo world\n"],
    ["a command from the history", ["$ ls -l\b\b\b\b\bpwd\u001b[K\r\n"], "$ pwd\n"],
    ["a deleted letter", ["abcd\u001b[2D\u001b[P\r\n"], "abd\n"],
    ["erased letters", ["abcd\b\b\b\u001b[2X\r\n"], "a  d\n"],
    ["a column", ["up\u001b[6G[ OK ]"], "up   [ OK ]"],
    [
      "wide letters that were taken back",
      ["\u4f60\u597d\b\b  \b\b\u{1f600}a\u0301\b\b\bx"],
      "\u4f60xa\u0301",
    ],
    ["a progress bar", ["10%\r20%\r\u001b[K30%\r\n"], "10%\n20%\n30%\n"],
    ["bash's own modes", ["$ ls\r\n\u001b[?2004l\rfile\r\n\u001b[?2004h$ "], "$ ls\nfile\n$ "],
    ["colours", ["\u001b[1;31mred\u001b[0m\u001b(B"], "red"],
    ["pages", ["a\fb\vc"], "a\nb\nc"],
  ])("has no trace of %s", (_what, parts, text) => {
    expect(textOf(...parts)).toBe(text);
    expect(textOf(...parts.join(""))).toBe(text);
  });

  it("writes a line past its bound as it stands", () => {
    const lines = new TextLines();
    const long = "x".repeat(3_000);
    expect(lines.push(long)).toBe(long);
    expect(lines.push("\b\u001b[9999999999Cy\u001b[9999999999@\rnext\n")).toMatch(/^ *y *\nnext\n$/);
    expect(lines.end()).toBe("");
  });
});

it("resets all that it lets a session set, and keeps the cursor's place", async () => {
  const terminal = new headless.Terminal({ cols: 20, rows: 6, scrollback: 0, allowProposedApi: true });
  const write = (text: string) => new Promise<void>((resolve) => terminal.write(text, resolve));
  const lines = () =>
    Array.from({ length: 6 }, (_, at) => terminal.buffer.active.getLine(at)?.translateToString(true));
  await write("kept\r\nline\u001b[?1049h");
  await write(filtered("vi\u001b[2;4r\u001b[4h\u001b[?7l\u001b(0\u001b[31m\u001b[?25l\u001b[?2026h"));
  await write(`${TerminalFilter.RESET}\nq${"abcdefghij".repeat(2)}\b\b\u001b[2Dx`);
  expect(lines()).toEqual(["kept", "line", "    qabcdefghijabcde", "fxhij", "", ""]);
  await write("\r\n1\r\n2\r\n3");
  expect(lines()).toEqual(["line", "    qabcdefghijabcde", "fxhij", "1", "2", "3"]);
  terminal.dispose();
});
