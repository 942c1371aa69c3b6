import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  FallbackDialer,
  FallbackExecutor,
  type PortForwardConnection,
  SpdyDialer,
  SpdyExecutor,
  Target,
  TunnelDialer,
  WebSocketExecutor,
} from "../../packages/client/src/index.ts";
import type { RequestedStreams } from "../../protocols/remotecommand/index.ts";
import { Collected, inputOf } from "../support/client/websocket-server.ts";
import { expectManyStreams } from "../support/forwarded-streams.ts";
import { KubernetesPeers } from "../support/kubernetes-peers.ts";
import { describeReal } from "../support/real-parts.ts";

const MIB = 1024 * 1024;

describeReal("go", "the client against Kubernetes' own servers", () => {
  let peers: KubernetesPeers;
  beforeAll(async () => {
    peers = new KubernetesPeers();
    await peers.start();
  });
  afterAll(() => peers.stop());

  const target = (port: number) => new Target({ url: `http://127.0.0.1:${port}`, proxy: "none" });
  const exec = (command: string) => (requested: RequestedStreams) => {
    const query = new URLSearchParams({ command });
    for (const name of ["stdin", "stdout", "stderr", "tty"] as const)
      if (requested[name]) query.set(name, "true");
    return `/exec?${query}`;
  };

  it.each([
    "v5 over the translator",
    "SPDY",
    "SPDY after the fallback",
  ])("exec by %s: 16 MiB both ways, exit codes", async (way) => {
    const executorOf = (command: string) => {
      const spdy = new SpdyExecutor(target(peers.serverPort), exec(command));
      if (way === "SPDY") return spdy;
      const port = way.startsWith("v5") ? peers.handlersPort : peers.serverPort;
      const webSocket = new WebSocketExecutor(target(port), exec(command));
      return way.startsWith("v5") ? webSocket : new FallbackExecutor(webSocket, spdy);
    };
    const bytes = randomBytes(16 * MIB);
    const stdout = new Collected();
    expect(await executorOf("echo").stream({ stdin: inputOf(bytes), stdout })).toMatchObject({ exitCode: 0 });
    expect(stdout.bytes.equals(bytes)).toBe(true);
    for (const code of [1, 42, 255]) {
      expect(await executorOf(`exit=${code}`).stream({ stdout: new Collected() })).toMatchObject({
        exitCode: code,
      });
    }
  });

  it.each([
    "tunnel",
    "SPDY",
    "SPDY after the fallback",
  ])("port-forward by %s: many streams at once, half-close", async (way) => {
    const spdy = new SpdyDialer(target(peers.serverPort), "/portforward");
    const tunnel = new TunnelDialer(
      target(way === "tunnel" ? peers.handlersPort : peers.serverPort),
      "/portforward",
    );
    const dialer = way === "SPDY" ? spdy : way === "tunnel" ? tunnel : new FallbackDialer(tunnel, spdy);
    const connection: PortForwardConnection = await dialer.dial();
    await expectManyStreams(connection);
  });
});
