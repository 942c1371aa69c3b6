import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Sluice } from "../../support/sluice.ts";
import { SluiceAtPort } from "../../support/sluice-at-port.ts";

let api: Server;
let client: SluiceAtPort;
let sluice: Sluice;

beforeAll(async () => {
  api = createServer((_request, response) => {
    response.setHeader("Content-Type", "application/json");
    response.end(
      JSON.stringify({
        kind: "Pod",
        apiVersion: "v1",
        metadata: { name: "done", namespace: "default" },
        spec: { containers: [{ name: "main" }] },
        status: { phase: "Succeeded" },
      }),
    );
  });
  api.listen(0, "127.0.0.1");
  await once(api, "listening");
  client = new SluiceAtPort((api.address() as AddressInfo).port);
  sluice = client.sluice;
});
afterAll(async () => {
  client.remove();
  api.close();
  await once(api, "close");
});

describe("a completed pod, in kubectl's words", () => {
  it.each([
    [["attach", "done"], "attach a"],
    [["exec", "done", "--", "true"], "exec into a"],
    [["cp", "done:/x", "/tmp/x"], "exec into a"],
  ])("%o", async (args, words) => {
    expect(await sluice.run(args)).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: `error: cannot ${words} container in a completed pod; current phase is Succeeded\n`,
    });
  });
});
