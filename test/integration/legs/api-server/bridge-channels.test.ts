import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { ChannelClient } from "../../../support/channel-client.ts";
import { eventually } from "../../../support/eventually.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { ScriptedV5Node, SUCCESS, type V5Script } from "../../../support/scripted-v5-node.ts";
import { BridgedNode } from "../../../support/websocket-only.ts";

const EXIT_7 =
  '{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}';
const ALL = "stdin=true&stdout=true&stderr=true&command=x";

const bridged = new BridgedNode((script: V5Script) => new ScriptedV5Node(script));
const { start } = bridged;
afterEach(bridged.close);

const VERSIONS: [protocol: string | undefined, hasStatus: boolean][] = [
  ["v4.channel.k8s.io", true],
  ["v4.base64.channel.k8s.io", true],
  ["channel.k8s.io", false],
  ["base64.channel.k8s.io", false],
  [undefined, false],
];

describe.each(VERSIONS)("bridge of WebSocket commands: %s", (protocol, hasStatus) => {
  const isBase64 = protocol?.includes("base64") ?? false;
  const exec = (authority: string, query = ALL) => new ChannelClient(authority, protocol, "exec", query);

  it("stdin reaches the node as it was, outputs come back whole, then the status and 1000", async () => {
    let expected = 0;
    const authority = await start({
      onData: (channel, payload, session) => {
        if (channel !== 0) return;
        session.send(1, payload);
        session.send(2, payload);
        expected -= payload.byteLength;
        if (expected === 0) session.succeed();
      },
    });
    const client = exec(authority);
    await client.opened;
    expect(client.socket.protocol).toBe(protocol ?? "");
    const data = randomBytes(300_000);
    expected = data.byteLength;
    for (let offset = 0; offset < data.length; offset += 10_001)
      client.send(0, data.subarray(offset, offset + 10_001));
    expect(await client.closed).toBe(1000);
    expect(client.on(1).equals(data)).toBe(true);
    expect(client.on(2).equals(data)).toBe(true);
    expect(client.on(3).toString()).toBe(hasStatus ? SUCCESS : "");
    // The first message names a channel and carries nothing.
    expect(client.messages[0]).toEqual(isBase64 ? "1" : Buffer.of(1));
    expect(client.messages.every((message) => (typeof message === "string") === isBase64)).toBe(true);
    expect(bridged.node?.sessions[0]?.request.headers["sec-websocket-protocol"]).toBe("v5.channel.k8s.io");
    expect(await bridged.harness?.metric("sluice_streaming_requests_total")).toEqual([
      'sluice_streaming_requests_total{subresource="exec",plan="bridge",code="101"} 1',
    ]);
  });

  it("an exit code and a lost node in its words, never silence", async () => {
    const authority = await start({
      onStart: (session) => {
        if (bridged.node?.sessions.length === 2) return session.socket.terminate();
        session.send(3, EXIT_7);
        session.socket.close(1000);
      },
    });
    const failed = exec(authority);
    expect(await failed.closed).toBe(1000);
    const text = "command terminated with non-zero exit code: command terminated with exit code 7";
    expect(failed.on(3).toString()).toBe(hasStatus ? EXIT_7 : text);
    const lost = exec(authority);
    expect(await lost.closed).toBe(1000);
    const word = lost.on(3).toString();
    expect(word).toContain("the node's connection was lost");
    if (hasStatus) expect(JSON.parse(word).status).toBe("Failure");
    else expect(word).toMatch(/^Internal error occurred: /);
  });

  it("has no end of stdin but its own; that is the node's CLOSE signal", async () => {
    const authority = await start({});
    const client = exec(authority);
    await client.opened;
    if (!isBase64) client.socket.send(Buffer.of(255, 0));
    client.send(4, "{}");
    client.send(0, "input");
    await eventually("stdin has come", () => bridged.node?.sessions[0]?.channels[0]?.length === 1);
    expect(bridged.node?.sessions[0]?.closed).toEqual([]);
    // Without a terminal sizes go nowhere.
    expect(bridged.node?.sessions[0]?.channels[4]).toEqual([]);
    client.socket.close(1000);
    await eventually("the node hears of it", () => bridged.node?.sessions[0]?.closed.length === 1);
    expect(bridged.node?.sessions[0]?.closed).toEqual([0]);
    // The command has its time to take the input, and to end.
    expect(bridged.node?.closeCodes).toEqual([]);
    bridged.node?.sessions[0]?.succeed();
    await eventually("the session is over", () => bridged.node?.closeCodes.length === 1);
    expect(bridged.node?.closeCodes).toEqual([1000]);
  });
});

describe("bridge of WebSocket commands", () => {
  it("attaches with a terminal, whose sizes travel", async () => {
    const authority = await start({
      onData: (channel, payload, session) => session.send(channel === 4 ? 1 : 2, payload),
    });
    const client = new ChannelClient(
      authority,
      "v4.channel.k8s.io",
      "attach",
      "stdin=true&stdout=true&tty=true",
    );
    await client.opened;
    client.send(4, '{"Width":9,"Height":8}');
    await eventually("the size has travelled", () => client.on(1).toString() === '{"Width":9,"Height":8}');
    expect(bridged.node?.requests[0]?.url).toBe("/attach/default/web/main?input=1&output=1&tty=1");
    client.socket.close();
  });

  it("base64 that is none ends the session, and the node hears of it", async () => {
    const authority = await start({});
    const client = new ChannelClient(authority, "v4.base64.channel.k8s.io", "exec", ALL);
    await client.opened;
    client.socket.send("0!!!!");
    expect(await client.closed).toBe(1002);
    await eventually("the node hears of it", () => bridged.node?.closeCodes.length === 1);
    expect(
      (await bridged.harness?.metric("sluice_streaming_sessions_ended_total"))?.filter(
        (line) => !line.endsWith(" 0"),
      ),
    ).toEqual([expect.stringContaining('cause="protocol-error"')]);
  });

  it("keeps a client alive that waits for PONGs, and the hop by PINGs", async () => {
    const clock = new ManualClock();
    const authority = await start({}, { clock });
    const client = new ChannelClient(authority, "v4.channel.k8s.io", "exec", ALL);
    await client.opened;
    let pongs = 0;
    let pings = 0;
    client.socket.on("pong", () => {
      pongs += 1;
    });
    await eventually("the node is there", () => bridged.node?.sessions.length === 1);
    bridged.node?.sessions[0]?.socket.on("ping", () => {
      pings += 1;
    });
    await eventually("both are heard", () => {
      clock.advance(5_000);
      return pongs > 0 && pings > 0;
    });
    client.socket.terminate();
  });

  it.each([
    "v3.channel.k8s.io",
    "anything",
  ])("%s alone is refused, and the node is not asked", async (protocol) => {
    const authority = await start({});
    const client = new ChannelClient(authority, protocol, "exec", ALL);
    await expect(client.opened).rejects.toThrow("Unexpected server response: 403");
    expect(bridged.node?.requests).toEqual([]);
  });
});
