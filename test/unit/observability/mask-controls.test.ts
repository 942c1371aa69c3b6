import { describe, expect, it, vi } from "vitest";
import { SessionError } from "../../../packages/client/src/sessions/session-error.ts";
import { writeEvent } from "../../../src/access/audit/audit-log.ts";
import { reportError } from "../../../src/cli/client/report-error.ts";
import { quietJson } from "../../../src/observability/mask-controls.ts";
import { redactText } from "../../../src/observability/redact.ts";

/** ESC, BEL, DEL, and C1's CSI and OSC. */
const LOUD = "a\u001b[2Jb\u0007c\u007fd\u009b2Je\u009d0;title\u009c";
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\x00-\x1f\x7f-\x9f]/;

describe("text of peers", () => {
  it("is written as JSON that no terminal acts on, and is read back as it was", () => {
    expect(quietJson({ [LOUD]: LOUD })).not.toMatch(CONTROLS);
    expect(JSON.parse(quietJson({ [LOUD]: LOUD }))).toEqual({ [LOUD]: LOUD });
  });

  it("is quiet in the audit log, and in the log", () => {
    const event = { user: { username: LOUD } } as unknown as Parameters<typeof writeEvent>[0];
    expect(writeEvent(event)).not.toMatch(CONTROLS);
    expect(JSON.stringify(redactText(LOUD))).not.toMatch(CONTROLS);
  });

  it("is quiet in what a client prints of a failure", () => {
    const written: unknown[] = [];
    const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      written.push(text);
      return true;
    });
    try {
      expect(reportError(new SessionError("protocol-error", LOUD))).toBe(1);
    } finally {
      write.mockRestore();
    }
    expect(written.join("").trimEnd()).not.toMatch(CONTROLS);
  });
});
