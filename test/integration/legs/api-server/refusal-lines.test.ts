import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { AccessGateway } from "../../../support/access-gateway.ts";
import { eventually } from "../../../support/eventually.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { ScriptedKubelet } from "../../../support/scripted-kubelet.ts";
import { ScriptedV5Node } from "../../../support/scripted-v5-node.ts";
import { V5Client } from "../../../support/v5-client.ts";

interface RefusalLine {
  readonly msg: string;
  readonly user?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly path?: string;
}

const refusals = (lines: readonly string[]): RefusalLine[] =>
  lines.map((line) => JSON.parse(line) as RefusalLine).filter(({ msg }) => msg === "request refused");

describe("a refusal's line in the log", () => {
  let gateway: AccessGateway | undefined;
  afterEach(() => gateway?.stop());

  const start = async (more: object = {}) => {
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), 'good,ann,1,"dev"\n');
      return { authentication: { tokenAuthFile: "tokens.csv", anonymous: { enabled: false } }, ...more };
    });
    return gateway;
  };

  it("is written for a plain request that is not authenticated, without its query", async () => {
    const access = await start();
    const response = await access.get("/api/v1/pods?token=s3cret", {
      headers: { Authorization: "Bearer wrong" },
    });
    expect(response.status).toBe(401);
    await eventually("the line", () => refusals(access.logLines).length > 0);
    expect(refusals(access.logLines)).toMatchObject([
      { code: 401, path: "/api/v1/pods", reason: "Unauthorized" },
    ]);
    expect(access.logLines.join("")).not.toContain("s3cret");
  });

  it("is written for a method that is answered 501 before it is a request, without its query", async () => {
    const access = await start();
    const [host = "", port = ""] = access.authority.split(":");
    const socket = connectTls({ host, port: Number(port), rejectUnauthorized: false });
    socket.write("LIST /v1/secret?token=s3cret HTTP/1.1\r\nHost: a\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 501 Not Implemented\r\n/);
    await eventually("the line", () => refusals(access.logLines).length > 0);
    expect(refusals(access.logLines)).toMatchObject([{ method: "LIST", code: 501, path: "/v1/secret" }]);
    expect(access.logLines.join("")).not.toContain("s3cret");
  });

  it("names the user and the reason of a session that policy refuses, once", async () => {
    const access = await start({ policy: { rules: [{ name: "no-exec", action: "deny" }] } });
    expect((await access.exec({ headers: { Authorization: "Bearer good" } })).status).toBe(403);
    expect(refusals(access.logLines)).toMatchObject([
      { code: 403, user: "ann", reason: expect.stringContaining("no-exec") },
    ]);
  });
});

describe("num_ws_*{failure}", () => {
  let harness: GatewayHarness | undefined;
  let node: { close(): Promise<void> } | undefined;
  afterEach(async () => {
    await harness?.close();
    await node?.close();
    harness = node = undefined;
  });
  const failures = async () => (await harness?.metric('num_ws_remote_command_v5_total{type="failure"}'))?.[0];

  it("counts attempts that are refused before they have a path: 404", async () => {
    const v5 = new ScriptedV5Node({});
    node = v5;
    harness = await startGatewayHarness({ kubeletPort: await v5.listen() });
    const response = await fetch(
      `http://${harness.authority}/api/v1/namespaces/default/pods/none/exec?command=x`,
    );
    expect(response.status).toBe(404);
    expect(await failures()).toBe('num_ws_remote_command_v5_total{type="failure"} 0');
    const client = new V5Client(harness.authority, "command=x&stdout=true", "../none/exec");
    await client.opened.catch(() => {});
    await expect.poll(failures).toBe('num_ws_remote_command_v5_total{type="failure"} 1');
  });

  it("counts the attempt that a node refuses, behind which the session goes on over SPDY", async () => {
    const kubelet = new ScriptedKubelet({
      refuse: ({ headers }) =>
        headers.upgrade === "websocket"
          ? "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
          : undefined,
    });
    node = kubelet;
    harness = await startGatewayHarness({
      kubeletPort: await kubelet.listen(),
      declaredFeatures: ["ExtendWebSocketsToKubelet"],
    });
    const client = new V5Client(harness.authority, "command=x&stdout=true");
    await client.opened;
    expect(await failures()).toBe('num_ws_remote_command_v5_total{type="failure"} 1');
    expect(await harness.metric('num_ws_remote_command_v5_total{type="success"}')).toEqual([
      'num_ws_remote_command_v5_total{type="success"} 1',
    ]);
    client.socket.terminate();
  });
});
