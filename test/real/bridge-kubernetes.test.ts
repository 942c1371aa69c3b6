import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SpdyDialer, SpdyExecutor, Target } from "../../packages/client/src/index.ts";
import type { RequestedStreams } from "../../protocols/remotecommand/index.ts";
import { ChannelClient } from "../support/channel-client.ts";
import { Collected, inputOf } from "../support/client/websocket-server.ts";
import { eventually } from "../support/eventually.ts";
import { expectManyStreams } from "../support/forwarded-streams.ts";
import { type GatewayHarness, startGatewayHarness } from "../support/gateway-harness.ts";
import { KubernetesPeers } from "../support/kubernetes-peers.ts";
import { describeReal } from "../support/real-parts.ts";
import { websocketOnly } from "../support/websocket-only.ts";

const MIB = 1024 * 1024;
const POD = "/api/v1/namespaces/default/pods/web";

describeReal("go", "bridge to Kubernetes' own translator and tunnel", () => {
  let peers: KubernetesPeers;
  let gateway: GatewayHarness;

  beforeAll(async () => {
    peers = new KubernetesPeers();
    await peers.start();
    gateway = await startGatewayHarness({ kubeletPort: peers.handlersPort, streaming: websocketOnly });
  });
  afterAll(async () => {
    // Its sessions end with their other side.
    await peers?.stop();
    await gateway?.close();
  });

  const target = () => new Target({ url: `http://${gateway.authority}`, proxy: "none" });
  const exec = (command: string) =>
    new SpdyExecutor(target(), (requested: RequestedStreams) => {
      const query = new URLSearchParams({ command });
      for (const name of ["stdin", "stdout", "stderr", "tty"] as const)
        if (requested[name]) query.set(name, "true");
      return `${POD}/exec?${query}`;
    });

  it("SPDY exec: 16 MiB both ways, half-close, exit codes", async () => {
    const bytes = randomBytes(16 * MIB);
    const stdout = new Collected();
    expect(await exec("echo").stream({ stdin: inputOf(bytes), stdout })).toMatchObject({ exitCode: 0 });
    expect(stdout.bytes.equals(bytes)).toBe(true);
    for (const code of [1, 42, 255])
      expect(await exec(`exit=${code}`).stream({ stdout: new Collected() })).toMatchObject({
        exitCode: code,
      });
  });

  it("SPDY exec: a large output arrives whole", async () => {
    const stdout = new Collected();
    expect(await exec(`source=${64 * MIB}`).stream({ stdout })).toMatchObject({ exitCode: 0 });
    expect(stdout.bytes.byteLength).toBe(64 * MIB);
  });

  it.each([
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    undefined,
  ])("WebSocket exec, %s: echo, and how it ended", async (protocol) => {
    const client = new ChannelClient(gateway.authority, protocol, "exec", "command=echo&stdin=1&stdout=1");
    await client.opened;
    const bytes = randomBytes(300_000);
    for (let at = 0; at < bytes.length; at += 30_000) client.send(0, bytes.subarray(at, at + 30_000));
    await eventually("it came back", () => client.on(1).equals(bytes), { timeoutMs: 20_000 });
    client.socket.close(1000);
    const failed = new ChannelClient(gateway.authority, protocol, "exec", "command=exit%3D7&stdout=1");
    expect(await failed.closed).toBe(1000);
    const word = failed.on(3).toString();
    expect(word).toContain("command terminated with non-zero exit code");
    expect(word.startsWith("{")).toBe(protocol?.startsWith("v4") ?? false);
  });

  it("SPDY port-forward: many streams at once, half-close", async () => {
    const connection = await new SpdyDialer(target(), `${POD}/portforward`).dial();
    await expectManyStreams(connection);
  });

  it.each([
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    undefined,
  ])("legacy port-forward, %s: two ports, and the end of one that ends", async (protocol) => {
    const client = new ChannelClient(gateway.authority, protocol, "portforward", "ports=7&ports=20001");
    await client.opened;
    const bytes = randomBytes(200_000);
    for (let at = 0; at < bytes.length; at += 20_000) client.send(0, bytes.subarray(at, at + 20_000));
    await eventually(
      "both came",
      () => client.on(0).length === 2 + bytes.length && client.on(2).length === 2 + MIB,
      { timeoutMs: 20_000 },
    );
    expect(client.on(0).subarray(2).equals(bytes)).toBe(true);
    client.socket.close();
  });

  it("all of it was bridged", async () => {
    const lines = await gateway.metric("sluice_streaming_requests_total");
    expect(lines.map((line) => /plan="([^"]*)",code="([^"]*)"/.exec(line)?.slice(1))).toEqual([
      ["bridge", "101"],
      ["bridge", "101"],
    ]);
  });
});
