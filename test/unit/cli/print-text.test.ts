import { describe, expect, it } from "vitest";
import { coloured } from "../../../src/cli/print-text.ts";

const TERMINAL = { isTTY: true };
const painted = (code: number, word: string): string => `\u001b[${code}m${word}\u001b[0m`;

describe("verdicts on a terminal", () => {
  it.each([
    ["allowed: no policy rule matches\n", 32, "allowed"],
    ["over SPDY/3.1: refused with 403: no\n", 31, "refused with 403"],
    ["no verdict: no kubeconfig was found\n", 33, "no verdict"],
    ["thresholds\n  pass  failed<1  0\n", 32, "pass"],
    ["thresholds\n  FAIL  failed<1  3\n", 31, "FAIL"],
    ["  exec  web  translate  ok, 12 ms\n", 32, "ok"],
    ["Failure  http-get http://127.0.0.1\n", 31, "Failure"],
    ["Warning: gateway.yaml: text\n", 33, "Warning"],
    ["https://proxy: 8 passed, 0 failed, 0 skipped in 1.2 s\n", 32, "8 passed"],
    ["https://proxy: 0 passed, 12 failed, 0 skipped in 1.2 s\n", 31, "12 failed"],
    ["https://proxy: 0 passed, 0 failed, 3 skipped in 1.2 s\n", 33, "3 skipped"],
    ["exec/binary/websocket-v5 (must)\n  bytes pass\n", 31, "exec/binary/websocket-v5 (must)"],
    ["exec/binary/spdy (should)\n", 33, "exec/binary/spdy (should)"],
    ["NOTHING COULD BE TRIED\n  exec: refused\n", 31, "NOTHING COULD BE TRIED"],
    ["Not tried at all\n  exec: refused\n", 33, "Not tried at all"],
    ["  mended  exec/binary/spdy (should): text\n", 32, "mended"],
  ])("%j", (text, code, word) => {
    expect(coloured(text, TERMINAL, { TERM: "xterm" })).toBe(text.replace(word, painted(code, word)));
  });

  it.each([
    "allowedOrigins: none\n",
    "it is allowed: by rule\n",
    "pods/ok\n",
    "Failures  3\n",
    "dial: lost connection\n",
    "to 3 failed sessions\n",
    "group  passed  failed  skipped\n",
  ])("%j has none", (text) => {
    expect(coloured(text, TERMINAL, { TERM: "xterm" })).toBe(text);
  });

  it.each([
    ["no terminal", {}, { TERM: "xterm" }],
    ["NO_COLOR", TERMINAL, { TERM: "xterm", NO_COLOR: "0" }],
    ["a dumb terminal", TERMINAL, { TERM: "dumb" }],
    ["no TERM", TERMINAL, {}],
  ])("are plain for %s", (_, stream, environment) => {
    expect(coloured("allowed: yes\n", stream, environment)).toBe("allowed: yes\n");
  });

  it("have colours if NO_COLOR is empty", () => {
    const text = coloured("allowed: yes\n", TERMINAL, { TERM: "xterm", NO_COLOR: "" });
    expect(text).toBe(`${painted(32, "allowed")}: yes\n`);
  });
});
