import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { DetachFilter } from "../../../../src/cli/client/terminal.ts";
import { detachKeys } from "../../../../src/cli/flag-readers.ts";

it.each([
  ["ctrl-p,ctrl-q", [0x10, 0x11]],
  ["ctrl-@,a,ctrl-[,ctrl-\\", [0x00, 0x61, 0x1b, 0x1c]],
  ["", []],
])("%s are these bytes of a terminal", (keys, bytes) => {
  expect([...detachKeys(keys)]).toEqual(bytes);
});

it.each(["ctrl-", "ctrl-P", "ab", "ctrl-p,,a", "ä"])("%s are no keys", (keys) => {
  expect(() => detachKeys(keys)).toThrow("must be keys");
});

it.each<[typed: string, passed: string, detaches: boolean]>([
  ["abc", "abc", false],
  ["ab\x10\x11cd", "ab", true],
  ["\x10\x10\x11", "\x10", true],
  ["\x10x\x10\x11", "\x10x", true],
  ["x\x10", "x\x10", false],
  ["\x11\x10", "\x11\x10", false],
])("of %j it passes %j on", async (typed, passed, detaches) => {
  for (const size of [1, 2, typed.length]) {
    let hasDetached = false;
    const filter = new DetachFilter(detachKeys("ctrl-p,ctrl-q"), () => {
      hasDetached = true;
      filter.end();
    });
    const seen = text(filter);
    for (let at = 0; at < typed.length && !hasDetached; at += size) filter.write(typed.slice(at, at + size));
    if (!hasDetached) filter.end();
    expect([await seen, hasDetached]).toEqual([passed, detaches]);
  }
});
