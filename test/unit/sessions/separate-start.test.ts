import { expect, it } from "vitest";
import { readsErrors } from "../../../src/sessions/separate-start.ts";

it.each([
  ["sluice", true],
  ["sluice/0.1.0", true],
  ["sluice-like", false],
  ["kubectl/v1.9.1 (linux/amd64) kubernetes/3a1c944", true],
  ["kubectl/v1.20.2 (linux/amd64) kubernetes/faecb19", true],
  ["kubectl/v1.21.0 (linux/amd64) kubernetes/cb303e6", false],
  ["kubectl/v1.2.0", true],
  ["kubectl/v1.200.0", false],
  ["kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd", false],
  ["Go-http-client/1.1", false],
  [undefined, false],
])("a client that calls itself %j gets the errors of forwarded connections: %j", (agent, isTold) => {
  expect(readsErrors(agent)).toBe(isTold);
});
