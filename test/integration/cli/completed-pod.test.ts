import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sluice } from "../../support/sluice.ts";

let api: Server;
let folder: string;
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
  folder = mkdtempSync(path.join(tmpdir(), "sluice-completed-"));
  const kubeconfig = path.join(folder, "kubeconfig");
  const server = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const entries = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    clusters: [{ name: "c", cluster: { server } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    users: [{ name: "u", user: {} }],
  };
  writeFileSync(kubeconfig, JSON.stringify(entries));
  sluice = new Sluice({ KUBECONFIG: kubeconfig });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
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
