import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { endOf, type SessionEnd } from "../../../packages/client/src/sessions/session-end.ts";
import { defaultSpdyLimits, SpdySession } from "../../../protocols/spdy/index.ts";
import { WebSocketFrameDecoder } from "../../../protocols/websocket/index.ts";
import { ForwardDecoder } from "../../../src/sessions/decoders/forward-decoder.ts";
import type { SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import { SessionObservers } from "../../../src/sessions/observers/session-observers.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";
import type { MemorySocket } from "../../support/carried-session.ts";
import { spdyPeer, webSocketPipe } from "../../support/session-peers.ts";

const PORT = 8080;

describe("a session that passes through", () => {
  /** The same memory, and the places in it that were read one by one. */
  function watched(bytes: Buffer): { chunk: Uint8Array; read: Set<number> } {
    const read = new Set<number>();
    const chunk = new Proxy(bytes, {
      get: (target, key) => {
        if (typeof key === "string" && /^\d+$/.test(key)) read.add(Number(key));
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    return { chunk, read };
  }
  const bytesOf = (send: (socket: MemorySocket) => void): Buffer => {
    const chunks: Buffer[] = [];
    send({ push: (bytes: Buffer) => void chunks.push(bytes) } as unknown as MemorySocket);
    return Buffer.concat(chunks);
  };
  const decoding = (
    [subresource, transport, protocol]: readonly ["exec" | "portforward", "spdy" | "websocket", string],
    ...observers: SessionObserver[]
  ) => {
    const offer = { transport } as StreamingRequest["offer"];
    const header = transport === "spdy" ? "X-Stream-Protocol-Version" : "Sec-WebSocket-Protocol";
    const { ends, decoderFor } = passThroughOf({ offer, subresource, ports: [PORT] }, [[header, protocol]], {
      spdy: defaultSpdyLimits,
    });
    return decoderFor(new SessionObservers([ends, ...observers]));
  };
  const PAYLOAD = "x".repeat(60);

  it.each([
    ["a WebSocket command", ["exec", "websocket", "v5.channel.k8s.io"], 1],
    ["a command in base64", ["exec", "websocket", "v4.base64.channel.k8s.io"], 1],
    ["legacy port-forward", ["portforward", "websocket", "v4.channel.k8s.io"], 0],
  ] as const)("is not read behind the first byte of its messages: %s", (_name, session, channelBytes) => {
    const decoder = decoding(session);
    const [fromNode, fromClient] = (["server", "client"] as const).map((role) =>
      watched(bytesOf((socket) => webSocketPipe(socket, role).send(Buffer.from(PAYLOAD)))),
    );
    decoder.fromNode(fromNode?.chunk as Uint8Array, () => {});
    decoder.fromClient(fromClient?.chunk as Uint8Array, () => {});
    expect(fromNode?.read.size).toBe(2 + channelBytes);
    expect(fromClient?.read.size).toBe(6 + 1);
  });

  it.each([
    [
      "a CLOSE for stdin, twice",
      [
        [255, 0],
        [255, 0],
      ],
      1,
    ],
    ["a malformed one, in parts", [[255, 0, 0, 0, 0]], 1],
    ["one for another channel, with a zero behind it", [[255, 7, 0, 0]], 0],
    ["an empty one", [[255]], 0],
  ])("ends stdin once at most: %s", (_name, messages, ends) => {
    let stdinEnds = 0;
    const observer: SessionObserver = {
      isRequired: false,
      onStreamEnd: () => {
        stdinEnds += 1;
      },
    };
    const decoder = decoding(["exec", "websocket", "v5.channel.k8s.io"], observer);
    const bytes = bytesOf((socket) => {
      const client = webSocketPipe(socket, "client");
      for (const message of messages) client.send(Buffer.from(message));
    });
    for (const byte of bytes) decoder.fromClient(Uint8Array.of(byte), () => {});
    expect(stdinEnds).toBe(ends);
  });

  it("is not read behind the headers of its SPDY frames", () => {
    const frame = bytesOf((socket) => {
      const node = new SpdySession("server", { send: (bytes) => void socket.push(bytes), onStream: () => 3 });
      node
        .openStream([["streamtype", "data"]], { onData: () => {}, onEnd: () => {} })
        .write(Buffer.from(PAYLOAD));
    }).subarray(-8 - PAYLOAD.length);
    for (const session of [
      ["exec", "spdy", "v4.channel.k8s.io"],
      ["portforward", "spdy", "portforward.k8s.io"],
    ] as const) {
      const { chunk, read } = watched(frame);
      decoding(session).fromNode(chunk, () => {});
      expect([...read].every((at) => at < 8)).toBe(true);
    }
  });

  it("that cannot be decoded passes on, unseen, unless an observer refuses it", () => {
    const undecodable: string[] = [];
    const seeing = (end?: SessionEnd): SessionObserver => ({
      isRequired: false,
      payload: { node: true, input: true, sizes: true },
      onUndecodable: (side) => {
        undecodable.push(side);
        return end;
      },
    });
    const garbage = Buffer.from("HTTP/1.1 500 Internal Server Error");
    const refusal = endOf("refused", "it cannot be recorded");
    for (const session of [
      ["exec", "websocket", "v5.channel.k8s.io"],
      ["portforward", "websocket", "v4.channel.k8s.io"],
    ] as const) {
      const passed: Uint8Array[] = [];
      const decoder = decoding(session, seeing());
      expect([decoder.fromClient(garbage, () => {}), decoder.fromClient(garbage, () => {})]).toEqual([
        undefined,
        undefined,
      ]);
      decoder.fromNode(garbage, (bytes) => void passed.push(bytes));
      expect([passed, undecodable.splice(0)]).toEqual([[garbage], ["client", "node"]]);
      const refusing = decoding(session, seeing(refusal));
      expect([refusing.fromClient(garbage, () => {}), refusing.fromClient(garbage, () => {})]).toEqual([
        refusal,
        refusal,
      ]);
      expect(refusing.fromNode(garbage, () => expect.unreachable())).toBe(refusal);
      undecodable.length = 0;
    }
  });

  it("follows no more streams than a connection may have open", () => {
    const problems: string[] = [];
    const observer: SessionObserver = {
      isRequired: false,
      payload: { node: true, input: true, sizes: true },
      onUndecodable: (_side, message) => void problems.push(message),
    };
    const decoder = new ForwardDecoder(
      { ...defaultSpdyLimits, maxStreams: 4 },
      new SessionObservers([observer]),
      {
        clientLeft: () => {},
        nodeLeft: () => {},
      },
    );
    const client = spdyPeer(
      {
        send: (bytes) => void decoder.fromClient(bytes, () => {}),
        take: () => [],
        closes: [],
        close: () => {},
      },
      "client",
    );
    for (let connection = 0; connection < 3; connection++) client.open(PORT);
    expect(problems).toEqual(["more than 4 streams are open"]);
  });
});

describe("what a WebSocket client sends", () => {
  const FORWARD_PORTS = [8080, 9090];

  /** The client's messages as the node has them, and where the bytes that passed end; for each length of reads. */
  const passedOf = (
    [subresource, protocol]: readonly ["exec" | "portforward", string],
    frames: readonly (readonly [first: number, body: string])[],
    cuts: readonly number[] = [1e6, 1, 2, 3, 5, 7],
  ) => {
    const { ends, decoderFor } = passThroughOf(
      { offer: { transport: "websocket" } as StreamingRequest["offer"], subresource, ports: FORWARD_PORTS },
      [["Sec-WebSocket-Protocol", protocol]],
      { spdy: defaultSpdyLimits },
    );
    const wire = Buffer.concat(
      frames.map(([first, body]) => {
        const masked = Buffer.from(body, "latin1").map((byte, at) => byte ^ ((at & 3) + 1));
        return Buffer.concat([Buffer.of(first, 0x80 | masked.byteLength, 1, 2, 3, 4), masked]);
      }),
    );
    return cuts.map((size) => {
      const decoder = decoderFor(new SessionObservers([ends]));
      const passed: Buffer[] = [];
      for (let at = 0; at < wire.byteLength; at += size)
        decoder?.fromClient(wire.subarray(at, at + size), (bytes) => void passed.push(Buffer.from(bytes)));
      const messages: string[] = [];
      let message = "";
      new WebSocketFrameDecoder("server", {
        onMessage: (part, _isFirst, isLast) => {
          message += Buffer.from(part).toString("latin1");
          if (isLast) messages.push(message);
          if (isLast) message = "";
        },
        onPing: () => {},
        onPong: () => {},
        onClose: (code) => void messages.push(`Close ${code}`),
      }).push(Buffer.concat(passed));
      return messages;
    });
  };

  it.each([
    ["v5.channel.k8s.io", 0x2, ["\0a", "\u0004{}", "\xff\0", "\0bc", "Close 1000"]],
    ["v4.channel.k8s.io", 0x2, ["\0a", "\u0004{}", "\0bc", "Close 1000"]],
  ])("reaches the node where it is input, a size, or their end, in %s, wherever reads cut it", (protocol, opcode, kept) => {
    const whole = 0x80 | opcode;
    const passed = passedOf(
      ["exec", protocol],
      [
        [whole, "\0a"],
        // Empty input, and no channel at all.
        [whole, "\0"],
        [whole, ""],
        [whole, "\u0004{}"],
        // Channels of the server's, and unknown ones; one in parts, with a heartbeat between them.
        [whole, "\u0001out"],
        [whole, "\u0003status"],
        [opcode, "\u0009be"],
        [0x89, "ping"],
        [0x00, "tween"],
        [0x80, "end"],
        [whole, "\xff\0"],
        // Input in parts, of which the first is the channel alone.
        [opcode, "\0"],
        [0x00, "b"],
        [0x80, "c"],
        [0x88, "\x03\xe8"],
      ],
    );
    expect(passed).toEqual(passed.map(() => kept));
  });

  it("is known by its digit in base64", () => {
    const passed = passedOf(
      ["exec", "v4.base64.channel.k8s.io"],
      [
        [0x81, "0YQ=="],
        [0x81, "0"],
        [0x81, "1b3V0"],
        [0x81, "4e30="],
      ],
    );
    expect(passed).toEqual(passed.map(() => ["0YQ==", "4e30="]));
  });

  it("reaches the node of a legacy port-forward on the data channels of its ports alone", () => {
    const passed = passedOf(
      ["portforward", "v4.channel.k8s.io"],
      [
        [0x82, "\0to the first"],
        [0x82, "\u0001junk"],
        [0x82, "\u0002to the second"],
        [0x82, "\u0003junk"],
        [0x82, "\u0004junk"],
        [0x82, "\xff\0"],
        [0x82, "\0"],
        [0x02, "\u0001ju"],
        [0x80, "nk"],
      ],
    );
    expect(passed).toEqual(passed.map(() => ["\0to the first", "\u0002to the second"]));
    const inBase64 = passedOf(
      ["portforward", "v4.base64.channel.k8s.io"],
      [
        [0x81, "0YQ=="],
        [0x81, "1YQ=="],
        [0x81, "2YQ=="],
        [0x81, "4YQ=="],
      ],
    );
    expect(inBase64).toEqual(inBase64.map(() => ["0YQ==", "2YQ=="]));
  });

  const WANTED = [
    ["exec", "v5.channel.k8s.io", "\0\u0004\xff"],
    ["exec", "v4.channel.k8s.io", "\0\u0004"],
    ["exec", "v4.base64.channel.k8s.io", "04"],
    ["portforward", "v4.channel.k8s.io", "\0\u0002"],
  ] as const;
  const channel = fc.constantFrom("\0", "\u0001", "\u0002", "\u0004", "\xff", "0", "1", "4");
  const message = fc.tuple(
    fc.tuple(channel, fc.constantFrom("", "a", "abc")).map((parts) => parts.join("")),
    fc.array(fc.nat(4), { maxLength: 4 }),
    fc.boolean(),
  );

  it.each(
    WANTED,
  )("in fragments, empty ones too, is judged as it is whole: %s, %s", (subresource, protocol, wanted) => {
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 30 })),
        (all, cuts) => {
          const frames = all.flatMap(([text, at, hasPing]) => {
            const edges = [0, ...at.sort((a, b) => a - b), text.length];
            return edges.slice(1).flatMap((end, index): [number, string][] => {
              const isLast = index === edges.length - 2;
              const first = (isLast ? 0x80 : 0) | (index === 0 ? 0x2 : 0);
              return [
                [first, text.slice(edges[index], Math.max(end, edges[index] as number))],
                ...(hasPing ? [[0x89, "p"] as [number, string]] : []),
              ];
            });
          });
          const kept = all
            .map(([text]) => text)
            .filter((text) => text.length > 1 && wanted.includes(text[0] as string));
          for (const passed of passedOf([subresource, protocol], frames, [...cuts, 1, 1e6]))
            expect(passed).toEqual(kept);
        },
      ),
    );
  });

  it("has its Close passed on in the middle of a message that the node has nothing of", () => {
    const passed = passedOf(
      ["exec", "v5.channel.k8s.io"],
      [
        [0x02, ""],
        [0x88, "\x03\xe8"],
      ],
    );
    expect(passed).toEqual(passed.map(() => ["Close 1000"]));
  });
});
