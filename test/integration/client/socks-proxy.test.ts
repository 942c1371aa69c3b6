import { afterEach, describe, expect, it } from "vitest";
import { dial } from "../../../packages/client/src/connect.ts";
import { getObject } from "../../../packages/client/src/get-object.ts";
import { ConnectError } from "../../../packages/client/src/http/upstream/connect-error.ts";
import { Target } from "../../../packages/client/src/target.ts";
import { failureOf } from "../../support/client/closed-after-each.ts";
import {
  endSession,
  startWebSocketServer,
  type TestWebSocketServer,
} from "../../support/client/websocket-server.ts";
import { openSocketCount, until } from "../../support/http/loopback.ts";
import { startSocksProxy, type TestSocksOptions, type TestSocksProxy } from "../../support/socks-proxy.ts";

const request = { path: "/", transport: "websocket", protocols: ["v5.channel.k8s.io"] } as const;

let server: TestWebSocketServer;
let proxy: TestSocksProxy;
afterEach(async () => {
  await proxy.close();
  await server.close();
  await until(() => openSocketCount() === 0, "all sockets are closed");
});

async function through(
  host: string,
  options: Omit<TestSocksOptions, "targetPort"> = {},
  user = "",
): Promise<Target> {
  server = await startWebSocketServer((socket) => endSession(socket));
  proxy = await startSocksProxy({ ...options, targetPort: server.port });
  return new Target({ url: `http://${host}:6443`, proxy: `socks5://${user}127.0.0.1:${proxy.port}` });
}

const failure = (run: Promise<unknown>) => failureOf(ConnectError, run);

describe("a SOCKS5 proxy", () => {
  it.each([
    ["api.example", "3 api.example"],
    ["192.0.2.1", "1 c0000201192b"],
    ["[2001:db8::1]", "4 20010db8000000000000000000000001192b"],
    ["[::ffff:192.0.2.1]", "4 00000000000000000000ffffc0000201192b"],
  ])("connects to %s, however slowly it answers", async (host, address) => {
    const target = await through(host, { isSlow: true });
    const { socket, protocol } = await dial(target, request);
    expect(protocol).toBe("v5.channel.k8s.io");
    socket.destroy();
    expect(proxy.asked).toEqual([{ address, user: undefined }]);
  });

  it("gets the user and password in its URL, and no others", async () => {
    const target = await through("api.example", { credentials: "me:p@ss" }, "me:p%40ss@");
    const { socket } = await dial(target, request);
    socket.destroy();
    expect(proxy.asked).toEqual([{ address: "3 api.example", user: "me:p@ss" }]);
  });

  it.each<[string, Partial<TestSocksOptions>, string]>([
    ["", { refusal: 5 }, "unknown error connection refused"],
    ["", { refusal: 99 }, "unknown error unknown code: 99"],
    ["", { credentials: "a:b" }, "no acceptable authentication methods"],
    ["a:c@", { credentials: "a:b" }, "username/password authentication failed"],
  ])("that refuses (%s %o) is named with Go's words, and no password", async (user, options, words) => {
    const target = await through("api.example", options, user);
    expect(await failure(dial(target, request))).toMatchObject({
      leg: "proxy",
      message: `socks connect tcp 127.0.0.1:${proxy.port}->api.example:6443: ${words}`,
      isUpgradeFailure: false,
    });
    expect(await failure(getObject(target, "/api"))).toMatchObject({ leg: "proxy" });
  });

  it("that speaks something else, says nothing, or is given up on, is no proxy", async () => {
    await through("api.example");
    const url = "http://api.example:6443";
    const web = new Target({ url, proxy: `socks5://127.0.0.1:${server.port}` });
    const error = await failure(dial(web, { ...request, dialTimeoutMs: 1_000 }));
    expect(error).toMatchObject({ leg: "proxy" });
    expect(error.message).toMatch(/unexpected protocol version 72|EOF|i\/o timeout/);
    const signal = AbortSignal.abort();
    expect(await failure(dial(web, { ...request, signal }))).toMatchObject({ leg: "aborted" });
  });
});
