import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { SpdySession, type SpdyStream, type StreamEnd } from "../../../../protocols/spdy/index.ts";
import { ChannelClient } from "../../../support/channel-client.ts";
import { eventually } from "../../../support/eventually.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { ScriptedTunnelNode, type TunnelScript } from "../../../support/scripted-tunnel-node.ts";
import { untilStill } from "../../../support/still.ts";
import { TunnelClient } from "../../../support/tunnel-client.ts";
import { BridgedNode } from "../../../support/websocket-only.ts";

// The bound under test.
const INPUT_GRACE_MS = 10_000;

const bridged = new BridgedNode((script: TunnelScript) => new ScriptedTunnelNode(script));
const { start, endCauses } = bridged;
const clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await bridged.close();
});

/** kubectl's port-forward before 1.31, in small. */
async function spdyForward(authority: string) {
  const upgrade = request(`http://${authority}/api/v1/namespaces/default/pods/web/portforward`, {
    method: "POST",
    headers: {
      Connection: "Upgrade",
      Upgrade: "SPDY/3.1",
      "X-Stream-Protocol-Version": "portforward.k8s.io",
    },
  });
  upgrade.end();
  const [response, socket] = (await once(upgrade, "upgrade")) as [
    { headers: Record<string, string> },
    Socket,
  ];
  clients.push(socket);
  const spdy = new SpdySession("client", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: () => 3,
  });
  socket.on("data", (chunk: Buffer) => spdy.receive(chunk));
  socket.on("error", () => {});
  const ended = new Promise<"finished" | "broken">((resolve) => {
    socket.once("end", () => resolve("finished"));
    socket.once("error", () => resolve("broken"));
  });
  const open = (streamtype: "error" | "data", requestid: number, port = 80) => {
    const parts: Buffer[] = [];
    const ends: ("fin" | StreamEnd["type"])[] = [];
    const headers = Object.entries({ streamtype, port: String(port), requestid: String(requestid) });
    const stream: SpdyStream = spdy.openStream(headers, {
      onData: (part, fin) => {
        parts.push(Buffer.from(part));
        if (fin) ends.push("fin");
      },
      onEnd: ({ type }) => ends.push(type),
    });
    return { stream, ends, bytes: () => Buffer.concat(parts) };
  };
  return { response, socket, spdy, open, ended };
}

const echo: TunnelScript = {
  onData: (name, part, fin, { streams }) => {
    if (!name.startsWith("data")) return;
    streams.get(name)?.write(part);
    if (fin) for (const type of ["data", "error"]) streams.get(`${type}${name.slice(4)}`)?.finish();
  },
};

describe("bridge of port-forward over SPDY", () => {
  it("its bytes are the tunnel's, several connections at once, half-closed by either side", async () => {
    const authority = await start(echo);
    const client = await spdyForward(authority);
    expect(client.response.headers).toMatchObject({
      upgrade: "SPDY/3.1",
      "x-stream-protocol-version": "portforward.k8s.io",
    });
    const pairs = Array.from({ length: 5 }, (_, id) => {
      client.open("error", id).stream.finish();
      return { ...client.open("data", id), data: randomBytes(300_000) };
    });
    for (const { stream, data } of pairs) {
      for (let at = 0; at < data.length; at += 9_999) stream.write(data.subarray(at, at + 9_999));
      stream.finish();
    }
    await eventually("all came back", () => pairs.every(({ ends }) => ends.length === 1));
    for (const { bytes, data, ends } of pairs) {
      expect(bytes().equals(data)).toBe(true);
      expect(ends).toEqual(["fin"]);
    }
    const [asked] = bridged.node?.requests ?? [];
    expect(asked?.url).toBe("/portForward/default/web");
    expect(asked?.headers["sec-websocket-protocol"]).toBe("SPDY/3.1+portforward.k8s.io");
    expect(await bridged.harness?.metric("sluice_streaming_requests_total")).toEqual([
      'sluice_streaming_requests_total{subresource="portforward",plan="bridge",code="101"} 1',
    ]);
  });

  it("what one read brings leaves as one message", async () => {
    const authority = await start({});
    const client = await spdyForward(authority);
    client.socket.cork();
    for (let id = 0; id < 20; id++) client.open("error", id).stream.finish();
    client.socket.uncork();
    await eventually("all streams are there", () => bridged.node?.sessions[0]?.fins.length === 20);
    expect(bridged.node?.messages.length).toBeLessThan(10);
  });

  it("a proper end of the node ends the client properly", async () => {
    const authority = await start({ onStream: (_name, _stream, { socket }) => socket.close(1000) });
    const client = await spdyForward(authority);
    client.open("error", 0);
    expect(await client.ended).toBe("finished");
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="completed"')]);
  });

  it.each<[string, NonNullable<TunnelScript["onStream"]>, string]>([
    ["breaks the connection", (_name, _stream, { socket }) => socket.terminate(), "upstream-lost"],
    ["closes with 1011", (_name, _stream, { socket }) => socket.close(1011), "upstream-lost"],
    ["sends text", (_name, _stream, { socket }) => socket.send("text"), "protocol-error"],
  ])("a node that %s resets the client's streams", async (_what, onStream, cause) => {
    const authority = await start({ onStream });
    const client = await spdyForward(authority);
    const { ends } = client.open("error", 0);
    expect(await client.ended).toBe("finished");
    expect(ends).toEqual(["reset"]);
    await expect.poll(endCauses).toEqual([expect.stringContaining(`cause="${cause}"`)]);
  });

  it("empty messages mean nothing", async () => {
    const authority = await start({
      ...echo,
      onStream: (_name, _stream, { socket }) => socket.send(Buffer.alloc(0)),
    });
    const client = await spdyForward(authority);
    client.open("error", 0);
    const data = client.open("data", 0);
    data.stream.write(Buffer.from("hello"));
    await eventually("it came back", () => data.bytes().toString() === "hello");
  });

  it("a client that goes closes the tunnel, after what it had sent", async () => {
    const authority = await start({});
    const client = await spdyForward(authority);
    client.open("data", 0).stream.write(Buffer.from("last words"));
    client.socket.end();
    await eventually("the tunnel is closed", () => bridged.node?.closeCodes.length === 1);
    expect(bridged.node?.closeCodes).toEqual([1000]);
    expect(Buffer.concat(bridged.node?.sessions[0]?.received.get("data0") ?? []).toString()).toBe(
      "last words",
    );
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="client-gone"')]);
  });

  it("a client that breaks closes the tunnel at once", async () => {
    const authority = await start({});
    const client = await spdyForward(authority);
    client.open("data", 0);
    await eventually("the stream is there", () => bridged.node?.sessions[0]?.streams.size === 1);
    client.socket.resetAndDestroy();
    await eventually("the tunnel is closed", () => bridged.node?.closeCodes.length === 1);
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="client-gone"')]);
  });

  it("ports that policy forbids do not reach the node", async () => {
    const policy = { rules: [{ name: "no-ssh", match: { ports: [22] }, action: "deny" }] };
    const authority = await start({}, { policy });
    const client = await spdyForward(authority);
    const allowed = client.open("data", 0, 80);
    await eventually("the allowed stream is there", () => bridged.node?.sessions[0]?.streams.size === 1);
    const refused = client.open("data", 1, 22);
    expect(await client.ended).toBe("finished");
    expect([allowed.ends, refused.ends]).toEqual([["reset"], ["reset"]]);
    expect(bridged.node?.sessions[0]?.streams.size).toBe(1);
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="refused"')]);
  });

  it("a reader that stops holds the node back, and gets everything later", async () => {
    const part = randomBytes(64 * 1024);
    const count = 512;
    let sent = 0;
    const authority = await start({
      onStream: (name, stream, { socket }) => {
        if (name !== "data0") return;
        const more = (): void => {
          if (sent++ === count) stream.finish();
          else {
            stream.write(part);
            socket.ping("", undefined, more);
          }
        };
        more();
      },
    });
    const client = await spdyForward(authority);
    const data = client.open("data", 0);
    await eventually("data has begun", () => data.bytes().length > 0);
    client.socket.pause();
    expect(await untilStill("what the node sends", () => sent)).toBeLessThan(count);
    client.socket.resume();
    await eventually("all of it came", () => data.ends.length === 1, { timeoutMs: 20_000 });
    expect(data.bytes().byteLength).toBe(part.byteLength * count);
  });
});

describe("bridge of the KEP's name for the tunnel", () => {
  it("asks the node by the shipped name, and answers by the client's", async () => {
    const authority = await start(echo);
    const client = await TunnelClient.open(authority, {
      protocols: ["v2.portforward.k8s.io"],
      speaksSpdy: true,
    });
    expect(client.protocol).toBe("v2.portforward.k8s.io");
    client.openStream("error", 0).stream.finish();
    const data = client.openStream("data", 0);
    data.stream.write(Buffer.from("hello"));
    data.stream.finish();
    expect(await data.ended).toBe("finished");
    expect(data.text().toString()).toBe("hello");
    client.socket.close(1000);
    await client.closed;
  });
});

const LEGACY = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", undefined] as const;

describe.each(LEGACY)("bridge of the legacy port-forward: %s", (protocol) => {
  const forward = (authority: string, query = "ports=80,443") =>
    new ChannelClient(authority, protocol, "portforward", query);

  it("opens a pair for each port, tells the ports first, and carries both ways", async () => {
    const authority = await start(echo);
    const client = forward(authority);
    await client.opened;
    expect(client.socket.protocol).toBe(protocol ?? "");
    const data = randomBytes(200_000);
    for (let at = 0; at < data.length; at += 7_777) client.send(0, data.subarray(at, at + 7_777));
    client.send(2, "to 443");
    client.send(1, "errors are the server's");
    client.send(9, "no such port");
    await eventually(
      "both came back",
      () => client.on(0).length === data.length + 2 && client.on(2).length === 8,
    );
    expect(client.on(0).equals(Buffer.concat([Buffer.of(80, 0), data]))).toBe(true);
    expect(client.on(2)).toEqual(Buffer.concat([Buffer.of(443 & 0xff, 443 >> 8), Buffer.from("to 443")]));
    expect(client.on(1)).toEqual(Buffer.of(80, 0));
    expect(client.on(3)).toEqual(Buffer.of(443 & 0xff, 443 >> 8));
    const session = bridged.node?.sessions[0];
    expect([...(session?.streams.keys() ?? [])]).toEqual(["error0", "data0", "error1", "data1"]);
    expect(session?.streams.get("data1")?.headers.get("port")).toBe("443");
    // A tunnel's ports stand in its streams.
    expect(bridged.node?.requests[0]?.url).toBe("/portForward/default/web");
    client.socket.close();
    await eventually("the tunnel is closed", () => bridged.node?.closeCodes.length === 1);
    expect(bridged.node?.closeCodes).toEqual([1000]);
    expect(session?.fins).toContain("data0");
  });

  it("a client's Close ends every port's input, and the node may deliver it before the tunnel ends", async () => {
    const ends: (() => void)[] = [];
    const authority = await start({
      onData: (name, _part, fin, { streams }) => {
        if (!fin || !name.startsWith("data")) return;
        ends.push(() => {
          streams.get(name)?.write(Buffer.from("an answer that has no reader"));
          for (const type of ["data", "error"]) streams.get(`${type}${name.slice(4)}`)?.finish();
        });
      },
    });
    const client = forward(authority);
    await client.opened;
    const data = randomBytes(200_000);
    for (let at = 0; at < data.length; at += 7_777) client.send(0, data.subarray(at, at + 7_777));
    client.send(2, "to 443");
    client.socket.close(1000);
    await client.closed;
    await eventually("both inputs have ended", () => ends.length === 2);
    const received = bridged.node?.sessions[0]?.received;
    expect(Buffer.concat(received?.get("data0") ?? []).equals(data)).toBe(true);
    expect(Buffer.concat(received?.get("data1") ?? []).toString()).toBe("to 443");
    // A kubelet drops at a Close what the pod has not taken yet.
    expect(bridged.node?.closeCodes).toEqual([]);
    ends[0]?.();
    await expect.poll(endCauses).toHaveLength(1);
    expect(bridged.node?.closeCodes).toEqual([]);
    ends[1]?.();
    await eventually("the tunnel is closed", () => bridged.node?.closeCodes.length === 1);
    expect(bridged.node?.closeCodes).toEqual([1000]);
  });

  it("ends with 1000 when the node has ended every connection", async () => {
    const authority = await start({
      onStream: (name, stream, { streams }) => {
        if (!name.startsWith("data")) return;
        stream.write(Buffer.from("bye"));
        if (name === "data0") {
          stream.finish();
          streams.get("error0")?.finish();
        } else {
          streams.get("error1")?.reset();
          stream.reset();
        }
      },
    });
    const client = forward(authority);
    expect(await client.closed).toBe(1000);
    expect(client.on(0).subarray(2).toString()).toBe("bye");
    expect(client.on(2).subarray(2).toString()).toBe("bye");
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="completed"')]);
    await eventually("the tunnel is closed", () => bridged.node?.closeCodes.length === 1);
  });

  it("a port that nobody serves is told on its error channel, and the other goes on", async () => {
    const text = "error forwarding port 80 to pod x, uid : connection refused";
    const authority = await start({
      ...echo,
      onStream: (name, stream, { streams }) => {
        if (name !== "data0") return;
        streams.get("error0")?.write(Buffer.from(text));
        streams.get("error0")?.finish();
        stream.reset();
      },
    });
    const client = forward(authority);
    await eventually("the error has come", () => client.on(1).subarray(2).toString() === text);
    client.send(2, "still there");
    await eventually("the other goes on", () => client.on(2).subarray(2).toString() === "still there");
    client.socket.close();
  });

  it("a node that refuses the streams, or is lost, is told as such", async () => {
    const authority = await start({
      accepts: (name) => !name.endsWith("0"),
      onStream: (name, _stream, { socket }) => name === "data1" && queueMicrotask(() => socket.terminate()),
    });
    const client = forward(authority);
    expect(await client.closed).toBe(1011);
    expect(client.on(1).subarray(2).toString()).toBe(
      "error forwarding port 80: the node refused the streams",
    );
    expect(client.on(3).subarray(2).toString()).toContain("error forwarding port 443: ");
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="upstream-lost"')]);
  });
});

describe("bridge of the legacy port-forward", () => {
  const v4 = (authority: string, query: string) =>
    new ChannelClient(authority, "v4.channel.k8s.io", "portforward", query);

  it.each([
    ["", 400],
    ["ports=0", 400],
    ["ports=65536", 400],
  ])("%s is refused as by a kubelet, and the node is not asked", async (query, status) => {
    const authority = await start({});
    await expect(v4(authority, query).opened).rejects.toThrow(`Unexpected server response: ${status}`);
    expect(bridged.node?.requests).toEqual([]);
  });

  it("a node that ends SPDY with connections open has lost them", async () => {
    const authority = await start({
      onStream: (name, _stream, { spdy }) => name === "data0" && spdy.goAway(),
    });
    const client = v4(authority, "ports=80");
    expect(await client.closed).toBe(1011);
    expect(client.on(1).subarray(2).toString()).toBe("error forwarding port 80: the node ended the session");
  });

  it("malformed SPDY from the node is told as such", async () => {
    const authority = await start({
      onStream: (name, _stream, { socket }) =>
        name === "data0" && socket.send(Buffer.from("8003000500000000", "hex")),
    });
    const client = v4(authority, "ports=80");
    expect(await client.closed).toBe(1011);
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="protocol-error"')]);
  });

  it("streams that nobody accepts are given up, and an error stream that stays open is not waited for", async () => {
    const clock = new ManualClock();
    const authority = await start(
      { onStream: (name, stream) => name === "data0" && stream.finish() },
      { clock },
    );
    const client = v4(authority, "ports=80");
    await eventually("the pair is there", () => bridged.node?.sessions[0]?.streams.size === 2);
    let hasClosed = false;
    void client.closed.then(() => {
      hasClosed = true;
    });
    await eventually("it is over", () => {
      clock.advance(5_000);
      return hasClosed;
    });
    expect(await client.closed).toBe(1000);
  });

  it("a node has INPUT_GRACE_MS to deliver what a client sent before its Close", async () => {
    const clock = new ManualClock();
    const authority = await start({}, { clock });
    const client = v4(authority, "ports=80");
    await client.opened;
    client.send(0, "input");
    client.socket.close(1000);
    await eventually("the input has ended", () => bridged.node?.sessions[0]?.fins.includes("data0") === true);
    clock.advance(INPUT_GRACE_MS - 1);
    await client.closed;
    expect(bridged.node?.closeCodes).toEqual([]);
    clock.advance(1);
    await eventually("the tunnel is closed", () => bridged.node?.closeCodes.length === 1);
    expect(bridged.node?.closeCodes).toEqual([1000]);
  });

  it("a client that is lost ends the tunnel at once", async () => {
    const authority = await start({});
    const client = v4(authority, "ports=80");
    await client.opened;
    client.send(0, "input");
    await eventually("it is there", () => bridged.node?.sessions[0]?.received.get("data0")?.length === 1);
    client.socket.terminate();
    await eventually("the tunnel is closed", () => bridged.node?.closeCodes.length === 1);
  });

  it("a port that policy forbids is refused before the node is asked", async () => {
    const policy = { rules: [{ name: "no-ssh", match: { ports: [22] }, action: "deny" }] };
    const authority = await start({}, { policy });
    await expect(v4(authority, "ports=80,22").opened).rejects.toThrow("403");
    expect(bridged.node?.requests).toEqual([]);
  });
});
