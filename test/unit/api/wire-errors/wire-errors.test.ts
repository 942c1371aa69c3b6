import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { WIRE_ERRORS } from "../../../../src/api/wire-errors/wire-errors.ts";
import { errorsReference, everyWireError } from "../../../support/errors-reference.ts";

describe("wire errors", () => {
  it("docs/errors.md is what `npm run docs` writes", async () => {
    const page = fileURLToPath(new URL("../../../../docs/errors.md", import.meta.url));
    await expect(errorsReference()).toMatchFileSnapshot(page);
  });

  it("each cause has one row in one table, and a sentence", () => {
    const keys = new Set(everyWireError().map(({ key }) => key));
    expect([...keys].sort()).toEqual(Object.keys(WIRE_ERRORS).sort());
    const causes = Object.values(WIRE_ERRORS).map(({ cause }) => cause);
    expect(new Set(causes).size).toBe(causes.length);
  });

  it.each(
    everyWireError().map(({ key, place, answer }) => [`${key}, ${place}`, answer] as const),
  )("%s is a failure with a code, and no fact is missing", (name, { code, status, message }) => {
    expect(status).toMatchObject({ kind: "Status", apiVersion: "v1", status: "Failure" });
    // A node's own code is a fact.
    if (!String(code).startsWith("<")) expect([4, 5]).toContain(Math.floor(code / 100));
    expect(message).not.toMatch(/undefined|NaN|\[object/);
    if (!name.startsWith("websocket-protocol-unknown")) expect(message).not.toBe("");
  });

  it.each([
    ["dial-failed", 500, 503, 502],
    ["response-timeout", 500, 504, 504],
    ["request-timeout", 500, 408, 408],
    ["invalid-request", 500, 400, 400],
    ["upgrade-refused", 500, 400, 400],
    ["internal-error", 500, 500, 500],
    ["closed-before-response", 500, 502, 502],
    ["malformed-response", 500, 502, 502],
    ["truncated-body", 500, 502, 502],
  ] as const)("an upstream's %s is %i in a session, %i forwarded, %i on an Ingress", (code, ...expected) => {
    const row = WIRE_ERRORS[code];
    const facts = { error: "EOF", upstream: "the API server" };
    expect([row.streaming(facts).code, row.forwarding(facts).code, row.ingress().code]).toEqual(expected);
  });
});
