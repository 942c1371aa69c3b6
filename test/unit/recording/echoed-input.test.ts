import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EchoedInput } from "../../../src/recording/format/echoed-input.ts";

/** `<` is typed, `>` is shown, each 10 ms. */
function play(...steps: string[]) {
  const input = new EchoedInput();
  const echoed: string[] = [];
  let nowMs = 0;
  for (const step of steps) {
    nowMs += 10;
    if (step.startsWith("<")) input.type(Buffer.from(step.slice(1)), nowMs);
    else if (step.startsWith("+")) nowMs += Number(step.slice(1));
    else echoed.push(...input.show(step.slice(1), nowMs));
  }
  input.end();
  return { echoed, isHidden: input.takeHidden() };
}

describe("typed lines", () => {
  it.each([
    [["<ls", ">$ ls", "<\r", ">\r\nfile\r\n"], ["ls"]],
    [["<l", ">$ l", "<s", ">s", "<\r", ">\r\n"], ["ls"]],
    [
      ["<a\rb\r", ">$ a\r\n$ b\r\n"],
      ["a", "b"],
    ],
    [["<lx", ">$ lx", "<\x7fs", ">\b \bs", "<\r", ">\r\n"], ["ls"]],
    [["<gr\u00fcn\r", ">\u001b[32m$\u001b[0m gr\u00fcn\u001b[?2004l\r\r\n"], ["gr\u00fcn"]],
    [["<rm -r x\x15ls\r", ">$ rm -r x", ">\r\u001b[K$ ls\r\n"], ["ls"]],
    [["<\r\r", ">$ \r\n$ \r\n"], []],
  ])("%j are recorded if they are echoed", (steps, lines) => {
    expect(play(...steps)).toEqual({ echoed: lines, isHidden: false });
  });

  it.each([
    ["a password", [">Password: ", "<hunter2\r", ">\r\nwelcome\r\n"]],
    ["one that stars stand for", [">Password: ", "<h", ">*", "<i", ">*", "<\r", ">\r\n"]],
    ["one typed by letters that are shown elsewhere", ["<h", ">h", "<i", ">\r\ni", "<\r", ">\r\n"]],
    ["one whose echo comes too late", ["<ls\r", "+1100", ">$ ls\r\n"]],
    ["one that was shown before it was typed", [">hunter2\r\n", "<hunter2\r", ">\r\n"]],
    ["keys of an editor", ["<\u001b[A\u001b[B:q!\r", ">\u001b[2J~:q!\r\n"]],
    ["one that the session's end cuts", [">Password: ", "<hunter"]],
    ["one that is too long", [`<${"x".repeat(5_000)}\r`, `>${"x".repeat(5_000)}\r\n`]],
  ])("are hidden: %s", (_what, steps) => {
    expect(play(...steps)).toEqual({ echoed: [], isHidden: true });
  });

  it.each([
    ["a line", ["<rm -r x", ">$ rm -r x", "<\x03", ">^C\r\n$ "]],
    ["a prompt for a password", ["<sudo ls\r", ">Password: ", "<hunt\t", "<\x03", ">\r\n$ "]],
  ])("are recorded again behind Ctrl-C in %s, which is hidden itself", (_what, steps) => {
    expect(play(...steps, "<ls\r", ">ls\r\n")).toEqual({ echoed: ["ls"], isHidden: true });
  });

  it("wait for their echo up to a number", () => {
    const lines = Array.from({ length: 20 }, (_, index) => `line-${index + 10}`);
    const { echoed, isHidden } = play(
      ...lines.map((line) => `<${line}\r`),
      `>${lines.map((line) => `${line}\r\n`).join("")}`,
    );
    expect([echoed, isHidden]).toEqual([lines.slice(0, 16), true]);
  });

  it("are never text that the terminal did not show after they were typed", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "b", "\x03", "\r", "\n", "\b", "\x7f", "\x15", "\u001b", "[", "K", " "),
    });
    const step = fc.tuple(fc.boolean(), text);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const input = new EchoedInput();
        let shown = "";
        for (const [isTyped, part] of steps) {
          if (isTyped) input.type(Buffer.from(part), 0);
          else {
            shown += part;
            for (const line of input.show(part, 0))
              for (const character of line.replaceAll(" ", "")) expect(shown).toContain(character);
          }
        }
      }),
    );
    // Without controls a recorded line is a piece of what was shown, as it stands there.
    const plain = fc.string({ unit: fc.constantFrom("a", "b", "\n"), minLength: 1 });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), plain), { maxLength: 30 }), (steps) => {
        const input = new EchoedInput();
        let shown = "";
        for (const [isTyped, part] of steps) {
          if (isTyped) input.type(Buffer.from(part), 0);
          else {
            shown += part;
            for (const line of input.show(part, 0)) expect(shown).toContain(`${line}\n`);
          }
        }
      }),
    );
  });
});

/** The least of three times, in milliseconds, for about 100 KB. */
function cost(step: string): number {
  const times = Array.from({ length: 3 }, () => {
    const startMs = performance.now();
    play(...Array.from({ length: 16 }, (_, index) => `<wait-${index}\r`), step);
    return performance.now() - startMs;
  });
  return Math.min(...times);
}

describe("what costs the recorder's thread much more than other text", () => {
  const plain = cost(`>${"hello world\r\n".repeat(8_000)}`);

  it.each([
    ["keys that erase keys of a full line", `<${"a".repeat(4_096)}${"\x7fa".repeat(50_000)}`],
    ["words that are erased", `<${"a".repeat(4_090)}${" b\x17".repeat(33_000)}`],
    ["blanks inserted into a full line", `>${"x".repeat(4_096)}\r${"\x1b[9999@".repeat(14_000)}`],
    ["cells deleted from a full line", `>${"x".repeat(4_096)}\r${"\x1b[1P".repeat(25_000)}`],
    ["lines that begin at their end", `>${"\x1b[4096Gx\n".repeat(11_000)}`],
    ["lines of blanks", `>${"\x1b[4096G \n".repeat(11_000)}`],
  ])("is none of: %s", (_what, step) => {
    expect(cost(step)).toBeLessThan(60 * plain);
  });
});
