import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../../src/cli/command-list.ts";
import { commandHelp, helpWidth } from "../../../src/cli/help-text.ts";
import { parseFlags } from "../../../src/cli/parse-flags.ts";
import type { Flag } from "../../../src/config/flag.ts";

describe("help", () => {
  it.each([
    [undefined, 100],
    [40, 80],
    [90, 90],
    [300, 100],
  ])("a terminal of %s columns has %i", (columns, width) => {
    expect(helpWidth(columns)).toBe(width);
  });

  it("aligns short and long names, and notes what a value may be", () => {
    const help = commandHelp(
      "try",
      {
        usage: ["POD [flags]"],
        description: "Tries a pod.",
        operands: [{ name: "POD", help: "a pod" }],
        flags: {
          count: { short: "c", value: "N", help: "how often", default: "1" },
          mode: { value: "NAME", help: "which way", choices: ["a", "b"] },
          twice: {
            help: "again, which is a sentence too long for the columns that are left on the line of its flag",
          },
          "a-name-that-is-longer-than-a-column": { value: "X", help: "below it", group: "More" },
          generator: { help: "not for people", isHidden: true },
        },
        examples: [{ title: "Once", line: "sluice try web" }],
        exitCodes: "0 or 1.",
      },
      80,
    );
    expect(help).toBe(`Tries a pod.

Usage:
  sluice try POD [flags]

Arguments:
  POD  a pod

Flags:
  -c, --count N    how often (default: 1)
      --mode NAME  which way (one of a, b)
      --twice      again, which is a sentence too long for the columns that are
                   left on the line of its flag
  -h, --help       show this help

More:
      --a-name-that-is-longer-than-a-column X
        below it

Examples:
  # Once
  sluice try web

Exit codes:
  0 or 1.
`);
  });

  describe.each(COMMANDS)("sluice $name", ({ name, load }) => {
    it("has examples that its parser understands", async () => {
      const { command } = await load();
      expect(command.examples.length).toBeGreaterThan(0);
      for (const { line } of command.examples) {
        const [, own] = new RegExp(`sluice ${name}\\b(.*)$`).exec(line) ?? [];
        if (own === undefined) continue;
        const words =
          own
            .split(" < ")[0]
            ?.split(" ")
            .filter((word) => word !== "") ?? [];
        expect(() => parseFlags(command, words), line).not.toThrow();
      }
      expect(command.examples.some(({ line }) => line.includes(`sluice ${name}`))).toBe(true);
    });

    it("describes every flag in a phrase", async () => {
      const { command } = await load();
      for (const [flag, { help, value, parse, choices, default: fallback }] of Object.entries<Flag>(
        command.flags,
      )) {
        expect(help, flag).toMatch(/^[a-z\d"`].*[^.\s]$|^(?:CA|DIR|HTTP|IP|SHA|TLS|UID)\b/);
        if (value === undefined)
          expect([parse, choices, fallback], flag).toEqual([undefined, undefined, undefined]);
      }
    });
  });
});
