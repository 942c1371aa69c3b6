import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { switchingWebSocket } from "../../../support/client/switching.ts";
import { eventually } from "../../../support/eventually.ts";
import { startGatewayHarness } from "../../../support/gateway-harness.ts";
import { answering, listenRaw, type RawUpstream } from "../../../support/http/loopback.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { ScriptedV5Node, SUCCESS, type V5Script } from "../../../support/scripted-v5-node.ts";
import { startSpdyCommand } from "../../../support/spdy-command-client.ts";
import { untilStill } from "../../../support/still.ts";
import { BridgedNode, websocketOnly } from "../../../support/websocket-only.ts";

const exitStatus = (code: number | string): string =>
  `{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code ${code}","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"${code}"}]}}`;

const bridged = new BridgedNode((script: V5Script) => new ScriptedV5Node(script));
const { start, endCauses } = bridged;
afterEach(bridged.close);

describe("bridge of SPDY commands", () => {
  it("asks the node as a v5 client and answers the client's SPDY", async () => {
    const authority = await start({ onStart: (session) => session.succeed() });
    const client = await startSpdyCommand(authority, { version: "v5.channel.k8s.io, v4.channel.k8s.io" });
    expect(await client.ended).toBe(true);
    expect(client.response.headers).toMatchObject({
      connection: "Upgrade",
      upgrade: "SPDY/3.1",
      "x-stream-protocol-version": "v4.channel.k8s.io",
    });
    const request = bridged.node?.requests[0];
    expect(request?.method).toBe("GET");
    expect(request?.url).toBe("/exec/default/web/main?command=x&error=1&input=1&output=1");
    expect(request?.headers).toMatchObject({
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-protocol": "v5.channel.k8s.io",
    });
    expect(Buffer.from(request?.headers["sec-websocket-key"] ?? "", "base64")).toHaveLength(16);
    expect(request?.headers["x-stream-protocol-version"]).toBeUndefined();
    expect(await bridged.harness?.metric("sluice_streaming_requests_total")).toEqual([
      'sluice_streaming_requests_total{subresource="exec",plan="bridge",code="101"} 1',
    ]);
  });

  it("1 MiB of stdin comes back whole on two outputs, its FIN is the CLOSE signal, and the status follows", async () => {
    const authority = await start({
      onData: (channel, payload, session) => {
        if (channel !== 0) return;
        session.send(1, payload);
        session.send(2, payload);
      },
      onClosed: (channel, session) => channel === 0 && session.succeed(),
    });
    const client = await startSpdyCommand(authority);
    const data = randomBytes(1024 * 1024);
    for (let offset = 0; offset < data.length; offset += 40_000)
      client.streams.stdin?.write(data.subarray(offset, offset + 40_000));
    client.streams.stdin?.finish();
    await client.ended;
    expect(Buffer.concat(client.received.stdout ?? []).equals(data)).toBe(true);
    expect(Buffer.concat(client.received.stderr ?? []).equals(data)).toBe(true);
    expect(client.text("error")).toBe(SUCCESS);
    expect(client.fins.slice(0, 3)).toEqual(["stdout", "stderr", "error"]);
    expect(bridged.node?.sessions[0]?.closed).toEqual([0]);
    await eventually("the node's connection has ended", () => bridged.node?.closeCodes.length === 1);
    expect(bridged.node?.closeCodes).toEqual([1000]);
    expect(bridged.harness?.context.sessions.size).toBe(0);
    const bytes = await bridged.harness?.metric("sluice_streaming_bytes_total");
    expect(bytes).toContain('sluice_streaming_bytes_total{subresource="exec",direction="upstream"} 1048576');
    expect(bytes).toContain(
      'sluice_streaming_bytes_total{subresource="exec",direction="downstream"} 2097152',
    );
  });

  it("sends nothing before the client has opened a stream", async () => {
    const authority = await start({ onStart: (session) => session.send(1, "early") });
    const client = await startSpdyCommand(authority, { streams: [] });
    const came: Buffer[] = [];
    client.socket.on("data", (chunk: Buffer) => came.push(chunk));
    await eventually("the node has begun", () => bridged.node?.sessions.length === 1);
    // What is ahead of the pong would have been sent by then; the PING frame's own 12 bytes come back.
    client.spdy.ping();
    await eventually("the pong", () => came.length > 0);
    expect(Buffer.concat(came).toString("hex")).toBe("800300060000000400000001");
    client.socket.destroy();
  });

  it("output that the node sends before the client's streams exist is kept for them", async () => {
    const authority = await start({
      onStart: (session) => {
        session.send(1, "early");
        session.succeed();
      },
    });
    const client = await startSpdyCommand(authority, { streams: [] });
    await eventually("the node has begun", () => bridged.node?.sessions.length === 1);
    let text = "";
    for (const name of ["stdin", "stderr", "error", "stdout"]) {
      client.spdy.openStream([["streamtype", name]], {
        onData: (part) => {
          text += `${name}:${Buffer.from(part).toString()};`;
        },
        onEnd: () => {},
      });
    }
    await client.ended;
    expect(text).toContain("stdout:early;");
    expect(text).toContain(`error:${SUCCESS};`);
  });

  it.each([
    ["v4.channel.k8s.io", exitStatus(7)],
    ["v3.channel.k8s.io", "command terminated with non-zero exit code: command terminated with exit code 7"],
    ["v2.channel.k8s.io", "command terminated with non-zero exit code: command terminated with exit code 7"],
    ["channel.k8s.io", "command terminated with non-zero exit code: command terminated with exit code 7"],
  ])("%s: an exit code in its words", async (version, word) => {
    const authority = await start({
      onStart: (session) => {
        session.send(3, exitStatus(7));
        session.socket.close(1000);
      },
    });
    const client = await startSpdyCommand(authority, { version });
    await client.ended;
    expect(client.response.headers["x-stream-protocol-version"]).toBe(version);
    expect(client.text("error")).toBe(word);
    expect(client.fins).toContain("error");
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="completed"')]);
  });

  it.each(["v3.channel.k8s.io", "channel.k8s.io"])("%s: success is silence", async (version) => {
    const authority = await start({ onStart: (session) => session.succeed() });
    const client = await startSpdyCommand(authority, { version });
    await client.ended;
    expect(client.text("error")).toBe("");
    expect(client.fins).toContain("error");
  });

  describe.each([
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "channel.k8s.io",
  ])("%s: never success when", (version) => {
    it.each<[string, V5Script["onStart"], string, string]>([
      ["no status comes", ({ socket }) => socket.close(1000), "upstream-lost", "without a status"],
      [
        "the node closes with 1011",
        ({ socket }) => socket.close(1011),
        "upstream-lost",
        "closed the session with 1011",
      ],
      ["the connection breaks", ({ socket }) => socket.terminate(), "upstream-lost", "connection was lost"],
      ["a text message comes", ({ socket }) => socket.send("1text"), "protocol-error", "a text message"],
      [
        "an empty message comes",
        ({ socket }) => socket.send(Buffer.alloc(0)),
        "protocol-error",
        "an empty message",
      ],
      [
        "the exit code is 300",
        (session) => {
          session.send(3, exitStatus(300));
          session.socket.close(1000);
        },
        "upstream-failed",
        "300",
      ],
      [
        "the status is no Status",
        (session) => {
          session.send(3, "oops");
          session.socket.close(1000);
        },
        "upstream-failed",
        "not a Status: oops",
      ],
      [
        "the status is half",
        (session) => {
          session.send(3, SUCCESS.slice(0, 20));
          session.socket.terminate();
        },
        "upstream-failed",
        "not a Status",
      ],
    ])("%s", async (_what, onStart, cause, word) => {
      const authority = await start({ onStart: (session) => onStart?.(session) });
      const client = await startSpdyCommand(authority, { version });
      await client.ended;
      const said = client.text("error");
      expect(said).toContain(word);
      if (version === "v4.channel.k8s.io") expect(JSON.parse(said).status).toBe("Failure");
      else expect(said).not.toMatch(/^\{/);
      await expect.poll(endCauses).toEqual([expect.stringContaining(`cause="${cause}"`)]);
    });
  });

  it("255 and unknown channels from the node mean nothing, and output before them stays", async () => {
    const authority = await start({
      onStart: (session) => {
        session.send(1, "a");
        session.socket.send(Buffer.of(255, 1));
        session.send(9, "nothing");
        session.send(1, "b");
        session.succeed();
      },
    });
    const client = await startSpdyCommand(authority);
    await client.ended;
    expect(client.text("stdout")).toBe("ab");
    expect(client.text("error")).toBe(SUCCESS);
  });

  it("a fragmented message and a split Status are read as one", async () => {
    const authority = await start({
      onStart: ({ socket }) => {
        socket.send(Buffer.from("\u0001frag"), { fin: false, binary: true });
        socket.send(Buffer.from("mented"), { fin: true, binary: true });
        socket.send(Buffer.from(`\u0003${SUCCESS.slice(0, 9)}`), { binary: true });
        socket.send(Buffer.from(`\u0003${SUCCESS.slice(9)}`), { binary: true });
        socket.close(1000);
      },
    });
    const client = await startSpdyCommand(authority);
    await client.ended;
    expect(client.text("stdout")).toBe("fragmented");
    expect(client.text("error")).toBe(SUCCESS);
  });

  it("sizes of a terminal travel on channel 4, and without a terminal nowhere", async () => {
    const script: V5Script = {
      onData: (channel, payload, session) => {
        if (channel === 4) session.send(1, payload);
      },
      onClosed: (_channel, session) => session.succeed(),
    };
    const authority = await start(script);
    const size = Buffer.from('{"Width":80,"Height":24}\n');
    const terminal = await startSpdyCommand(authority, {
      query: "stdin=true&stdout=true&tty=true&command=x",
      streams: ["error", "stdin", "stdout", "resize"],
    });
    terminal.streams.resize?.write(size);
    await eventually("the size has travelled", () => terminal.text("stdout") === size.toString());
    terminal.streams.stdin?.finish();
    await terminal.ended;

    const plain = await startSpdyCommand(authority, {
      streams: ["error", "stdin", "stdout", "stderr", "resize"],
    });
    plain.streams.resize?.write(size);
    plain.streams.stdin?.finish();
    await plain.ended;
    expect(plain.replies).toHaveLength(5);
    expect(plain.text("stdout")).toBe("");
    expect(bridged.node?.sessions[1]?.channels[4]).toEqual([]);
  });

  it("a client that leaves ends the command's input, and the session", async () => {
    const authority = await start({});
    const client = await startSpdyCommand(authority);
    client.streams.stdin?.write(Buffer.from("last words"));
    await eventually("stdin has come", () => bridged.node?.sessions[0]?.channels[0]?.length === 1);
    client.socket.destroy();
    await eventually("the node hears of it", () => bridged.node?.closeCodes.length === 1);
    expect(bridged.node?.sessions[0]?.closed).toEqual([0]);
    expect(bridged.node?.closeCodes).toEqual([1000]);
    expect(Buffer.concat(bridged.node?.sessions[0]?.channels[0] ?? []).toString()).toBe("last words");
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="client-gone"')]);
  });

  it("malformed SPDY from the client ends both sides", async () => {
    const authority = await start({});
    const client = await startSpdyCommand(authority);
    await eventually("the streams are there", () => client.replies.length === 4);
    client.socket.write(Buffer.from("80030063000000040000000", "hex"));
    client.socket.write(Buffer.from("8003000500000000", "hex"));
    await client.ended;
    await eventually("the node hears of it", () => bridged.node?.closeCodes.length === 1);
    await expect.poll(endCauses).toEqual([expect.stringContaining('cause="protocol-error"')]);
  });

  it("a node that has said the status and does not end is not waited for longer than ten seconds", async () => {
    const clock = new ManualClock();
    const authority = await start({ onStart: (session) => session.send(3, SUCCESS) }, { clock });
    const client = await startSpdyCommand(authority);
    await eventually("the streams are there", () => client.replies.length === 4);
    const untilTold = eventually("the client has the status", () => {
      clock.advance(1_000);
      return client.text("error") === SUCCESS;
    });
    await untilTold;
    await client.ended;
  });

  it("a client that does not open its streams is let go, and the command with it", async () => {
    const clock = new ManualClock();
    const authority = await start({}, { clock });
    const client = await startSpdyCommand(authority, { streams: ["error", "stdin"] });
    await eventually("two streams are there", () => client.replies.length === 2);
    clock.advance(30_000);
    await eventually("the node hears of it", () => bridged.node?.closeCodes.length === 1);
    await client.ended;
    expect(client.text("error")).toContain("the client did not open its streams in time");
  });

  it("idle sessions end with a Failure; a terminal is warned before", async () => {
    const clock = new ManualClock();
    const authority = await start({}, { clock, timeouts: { idleMs: 100_000 } });
    const client = await startSpdyCommand(authority, {
      query: "stdin=true&stdout=true&tty=true&command=x",
      streams: ["error", "stdin", "stdout", "resize"],
    });
    await eventually("the streams are there", () => client.replies.length === 4);
    clock.advance(60_000);
    await eventually("the terminal is warned", () =>
      client.text("stdout").includes("idle and will be ended"),
    );
    clock.advance(60_000);
    await client.ended;
    expect(JSON.parse(client.text("error")).message).toContain("idle for too long");
    await eventually("the node hears of it", () => bridged.node?.sessions[0]?.closed.includes(0));
  });

  it("pings both legs", async () => {
    const clock = new ManualClock();
    const authority = await start({}, { clock });
    const client = await startSpdyCommand(authority);
    await eventually("the streams are there", () => client.replies.length === 4);
    let nodePings = 0;
    bridged.node?.sessions[0]?.socket.on("ping", () => {
      nodePings += 1;
    });
    const seen: Buffer[] = [];
    client.socket.on("data", (chunk: Buffer) => seen.push(Buffer.from(chunk)));
    await eventually("the node is pinged", () => {
      clock.advance(5_000);
      return nodePings > 0;
    });
    await eventually("the client is pinged", () =>
      Buffer.concat(seen).includes(Buffer.from("80030006", "hex")),
    );
    client.socket.destroy();
  });

  it("a reader that stops holds the node back, and gets everything later", async () => {
    const part = randomBytes(64 * 1024);
    const count = 1024;
    let sent = 0;
    const authority = await start({
      onStart: (session) => {
        const more = (): void => {
          if (sent++ === count) session.succeed();
          else session.socket.send(Buffer.concat([Buffer.of(1), part]), more);
        };
        more();
      },
    });
    const client = await startSpdyCommand(authority);
    await eventually("output has begun", () => client.text("stdout").length > 0);
    client.socket.pause();
    expect(await untilStill("what the node sends", () => sent)).toBeLessThan(count);
    client.socket.resume();
    await client.ended;
    expect(Buffer.concat(client.received.stdout ?? []).byteLength).toBe(part.length * count);
    expect(client.text("error")).toBe(SUCCESS);
  });
});

describe("handshakes of a bridge", () => {
  it("a client that offers nothing known is refused in the runtime's words, and the node is not asked", async () => {
    const authority = await start({});
    await expect(startSpdyCommand(authority, { version: "v9.channel.k8s.io" })).rejects.toThrow(
      "403: unable to upgrade: unable to negotiate protocol: client supports [v9.channel.k8s.io], server accepts " +
        "[v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]",
    );
    await expect(startSpdyCommand(authority, { version: " " })).rejects.toThrow(
      "400: unable to upgrade: header",
    );
    expect(bridged.node?.requests).toEqual([]);
  });

  describe("a node's answer", () => {
    let raw: RawUpstream | undefined;
    afterEach(async () => {
      await raw?.close();
      raw = undefined;
    });

    async function startRaw(onConnection: (socket: Socket) => void): Promise<string> {
      raw = await listenRaw(onConnection);
      bridged.harness = await startGatewayHarness({ kubeletPort: raw.port, streaming: websocketOnly });
      return bridged.harness.authority;
    }

    it.each([
      [
        "another subprotocol",
        switchingWebSocket("v4.channel.k8s.io"),
        /500: .*invalid protocol, expected one of \[\\"v5.channel.k8s.io\\"\], got \\"v4.channel.k8s.io\\"/,
      ],
      ["no subprotocol", switchingWebSocket(""), /500: .*invalid protocol/],
      ["a wrong accept value", switchingWebSocket("v5.channel.k8s.io", "AAAA"), /500: .*bad handshake/],
      [
        "an extension",
        switchingWebSocket("v5.channel.k8s.io\r\nSec-WebSocket-Extensions: permessage-deflate"),
        /500: .*invalid compression negotiation/,
      ],
      [
        "SPDY",
        answering("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"),
        /500: .*missing upgrade headers/,
      ],
      [
        "a refusal in words",
        answering("HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\npod does not exist"),
        /404: .*"message":"pod does not exist"/,
      ],
      [
        "a refusal as a Status",
        answering(
          'HTTP/1.1 403 Forbidden\r\nContent-Length: 115\r\n\r\n{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403}',
        ),
        /403: .*"message":"no","reason":"Forbidden"/,
      ],
      [
        "a bare refusal",
        answering("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
        /403: .*the node refused the session with status code 403/,
      ],
      ["a redirect", answering("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"), /500: .*status code 302/],
      ["an end", (socket: Socket) => void socket.end(), /500: /],
    ])("%s stays an HTTP answer", async (_what, onConnection, answer) => {
      const authority = await startRaw(onConnection);
      await expect(startSpdyCommand(authority)).rejects.toThrow(answer);
      await eventually("the node's connection is closed", () =>
        raw?.sockets.every((socket) => socket.destroyed || socket.readableEnded),
      );
      expect(bridged.harness?.context.sessions.size).toBe(0);
    });
  });
});
