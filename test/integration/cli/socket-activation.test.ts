import { createServer } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { inherit } from "../../../src/app/runtime/inheritance.ts";
import { GatewayFiles } from "../../support/gateway-files.ts";
import { listen } from "../../support/http/loopback.ts";
import { serveGateway } from "../../support/served-gateway.ts";

vi.setConfig({ testTimeout: 120_000 });

/** `sluice serve` with sockets of ours from descriptor 3 on, as systemd starts it. */
async function activate(names: readonly string[], configuration: object = {}, owner?: number) {
  const files = new GatewayFiles({ configuration });
  onTestFinished(() => files.remove());
  const servers = names.map(() => createServer());
  const ports = await Promise.all(servers.map(listen));
  onTestFinished(() => {
    for (const server of servers) server.close();
  });
  const descriptors = servers.map((server) => (server as unknown as { _handle: { fd: number } })._handle.fd);
  const environment = { LISTEN_FDS: String(names.length), LISTEN_FDNAMES: names.join(":") };
  const gateway = await serveGateway(files.configurationFile, {
    environment,
    sockets: { descriptors, owner },
  });
  onTestFinished(() => gateway.stop());
  return { ports, gateway };
}

describe("sockets of a service manager", () => {
  it.each([
    ["one process", {}],
    ["two workers", { workers: 2 }],
  ])("are taken by the listeners of their names; the others open their own: %s", async (_name, configuration) => {
    const { ports, gateway } = await activate(["apiServer"], configuration);
    expect(gateway.ready.apiServerUrl).toBe(`http://127.0.0.1:${ports[0]}`);
    expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200);
  });

  it("for another process are left alone, with a warning", async () => {
    const { ports, gateway } = await activate(["apiServer"], {}, 1);
    expect(gateway.log()).toContain("sockets of a service manager are not taken");
    expect(gateway.ready.apiServerUrl).not.toContain(`:${ports[0]}`);
  });
});

describe("inherit", () => {
  const CONFIGURED = ["admin", "apiServer"];

  it.each([
    [{ LISTEN_FDS: "2", LISTEN_FDNAMES: "admin" }, 'has 1 names, and LISTEN_FDS is "2"'],
    [{ LISTEN_FDS: "one", LISTEN_FDNAMES: "admin" }, 'has 1 names, and LISTEN_FDS is "one"'],
    [{ LISTEN_FDS: "2", LISTEN_FDNAMES: "admin:admin" }, 'two sockets are named "admin"'],
    [
      { LISTEN_FDS: "1", LISTEN_FDNAMES: "sluice-api.socket" },
      '"sluice-api.socket" is not a configured listener: FileDescriptorName= must be one of admin, apiServer',
    ],
    [{ LISTEN_FDS: "1" }, '"" is not a configured listener'],
    [{ SLUICE_SUCCESSION: '{"version":9}' }, "is of version 9, and this program knows 1"],
  ])("refuses %j", (environment, message) => {
    expect(() => inherit({ LISTEN_PID: "7", ...environment }, CONFIGURED, 7)).toThrow(message);
  });

  it("leaves nothing in the environment for children", () => {
    const environment = { LISTEN_PID: "7", LISTEN_FDS: "1", LISTEN_FDNAMES: "admin", PATH: "/bin" };
    expect(inherit(environment, CONFIGURED, 7)).toMatchObject({ hasPredecessor: false });
    expect(environment).toEqual({ PATH: "/bin" });
  });
});
