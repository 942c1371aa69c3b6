import { afterEach, beforeEach, vi } from "vitest";

/** What this process prints during a test, on either output, in place of printing it. */
export function capturedOutput(): { text: string } {
  const printed = { text: "" };
  beforeEach(() => {
    printed.text = "";
    for (const output of [process.stdout, process.stderr]) {
      vi.spyOn(output, "write").mockImplementation((text) => {
        printed.text += String(text);
        return true;
      });
    }
  });
  afterEach(() => vi.restoreAllMocks());
  return printed;
}
