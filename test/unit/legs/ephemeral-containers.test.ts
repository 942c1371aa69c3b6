import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { AuditTrail } from "../../../src/access/audit/audit-trail.ts";
import { noteEphemeralContainers } from "../../../src/legs/api-server/ephemeral-containers.ts";

// The bound under test.
const MAX_READ_PATCH_BYTES = 256 * 1024;

const DEBUGGER = { name: "debugger-x7", image: "busybox:1.37", targetContainerName: "main", stdin: true };
const NAMED = '[{"name":"debugger-x7","image":"busybox:1.37","target":"main"}]';
const PATH = "/api/v1/namespaces/default/pods/web/ephemeralcontainers";

/** What the forwarder gets, and the annotations, of a body that begins before the API server is dialled. */
async function forwarded(body: string, { method = "PATCH", path = PATH } = {}) {
  const annotations: string[][] = [];
  const trail = { annotate: (...line: string[]) => void annotations.push(line) } as unknown as AuditTrail;
  const stream = new PassThrough();
  noteEphemeralContainers({ method, url: new URL(path, "http://gateway"), trail }, { body: stream });
  stream.write(body.slice(0, 10));
  await turn();
  let passed = "";
  stream.on("data", (part: Buffer) => {
    passed += String(part);
  });
  stream.end(body.slice(10));
  await new Promise((resolve) => stream.once("close", resolve));
  return { passed, annotations };
}

describe("a forwarded kubectl debug", () => {
  it("is audited with name, image and target, and passes unchanged", async () => {
    const patch = JSON.stringify({
      spec: { $setElementOrder: [{ name: DEBUGGER.name }], ephemeralContainers: [DEBUGGER] },
    });
    expect(await forwarded(patch)).toEqual({
      passed: patch,
      annotations: [["sluice.dev/ephemeral-containers", NAMED]],
    });
  });

  it.each([
    ["a pod", { kind: "Pod", spec: { ephemeralContainers: [DEBUGGER] } }],
    ["a JSON patch of one", [{ op: "add", path: "/spec/ephemeralContainers/-", value: DEBUGGER }]],
    ["a JSON patch of all", [{ op: "add", path: "/spec/ephemeralContainers", value: [DEBUGGER] }]],
  ])("is read as %s", async (_, body) => {
    const { annotations } = await forwarded(JSON.stringify(body));
    expect(annotations).toEqual([["sluice.dev/ephemeral-containers", NAMED]]);
  });

  it.each([
    ["of another encoding", "k8s\u0000protobuf"],
    ["without containers", '{"spec":null}'],
    ["without objects", "[1, null]"],
    [
      "that is too long",
      JSON.stringify({ spec: { ephemeralContainers: [DEBUGGER], x: "x".repeat(MAX_READ_PATCH_BYTES) } }),
    ],
  ])("%s is marked, and passes unchanged", async (_, body) => {
    expect(await forwarded(body)).toEqual({
      passed: body,
      annotations: [["sluice.dev/ephemeral-containers", "not read"]],
    });
  });

  it.each([
    { method: "GET" },
    { path: "/api/v1/namespaces/default/pods/web" },
  ])("alone is read: not %j", async (request) => {
    expect((await forwarded('{"spec":{}}', request)).annotations).toEqual([]);
  });
});
