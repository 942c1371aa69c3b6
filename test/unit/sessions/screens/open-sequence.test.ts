import { expect, it } from "vitest";
import { OpenSequence } from "../../../../src/sessions/screens/open-sequence.ts";

// The bound under test.
const MAX_OPEN_SEQUENCE = 4_096;

function openAfter(text: string, step = text.length): string {
  const open = new OpenSequence();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += step) open.push(bytes.subarray(at, at + step));
  return Buffer.from(open.bytes).toString();
}

it.each([
  ["text", ""],
  ["a\u001b", "\u001b"],
  ["a\u001b[", "\u001b["],
  ["a\u001b[38;5", "\u001b[38;5"],
  ["a\u001b[38;5\r", "\u001b[38;5\r"],
  ["a\u001b[31m", ""],
  ["a\u001b[31mb", ""],
  ["a\u001b[3\u001b[4", "\u001b[4"],
  ["a\u001b[3\u0018", ""],
  ["a\u001b(", "\u001b("],
  ["a\u001b(0", ""],
  ["a\u001b7", ""],
  ["\u001b]0;title", "\u001b]0;title"],
  ["\u001b]0;title\u0007", ""],
  ["\u001b]0;title\u001b", "\u001b"],
  ["\u001b]0;title\u001b\\", ""],
  ["\u001bPq#0;2", "\u001bPq#0;2"],
  ["\u009b3", "\u001b[3"],
  ["\u009d0;é", "\u001b]0;é"],
  ["Â", ""],
  [`\u001b]52;c;${"x".repeat(MAX_OPEN_SEQUENCE)}`, "\u001b_"],
  [`\u001b]52;c;${"x".repeat(MAX_OPEN_SEQUENCE)}\u0007`, ""],
])("%j ends in the middle of %j, in whatever parts it comes", (text, open) => {
  for (const step of [1, 2, 3, Buffer.byteLength(text)]) expect(openAfter(text, step)).toBe(open);
});
