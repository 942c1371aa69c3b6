import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SessionEnd } from "../../../packages/client/src/sessions/session-end.ts";
import { defaultSpdyLimits } from "../../../protocols/spdy/index.ts";
import { encodeClose, OPCODE, writeFrameHeader } from "../../../protocols/websocket/index.ts";
import type { PassThroughDecoder } from "../../../src/sessions/decoders/pass-through-decoder.ts";
import type { EndObserver } from "../../../src/sessions/observers/end-observer.ts";
import { SessionObservers } from "../../../src/sessions/observers/session-observers.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";

// The bound under test.
const MAX_STATUS_BYTES = 64 * 1024;

const HOW = "the connection broke";
const SUCCESS = '{"metadata":{},"status":"Success"}';

function frame(payload: Uint8Array | string, { opcode = OPCODE.BINARY as number, fin = true } = {}): Buffer {
  const body = Buffer.from(payload);
  const header = new Uint8Array(14);
  const bytes = writeFrameHeader(header, 0, opcode, body.byteLength, fin);
  return Buffer.concat([header.subarray(0, bytes), body]);
}
const onChannel = (channel: number, payload: string): Buffer => frame(String.fromCharCode(channel) + payload);

/** What is known of the end of a WebSocket session with this subprotocol. */
class Observed {
  readonly ends: EndObserver;
  readonly #decoder: PassThroughDecoder;

  constructor(protocol: string, subresource: "exec" | "portforward" = "exec") {
    const offer = { transport: "websocket", protocols: [protocol] } as unknown as StreamingRequest["offer"];
    const { ends, decoderFor } = passThroughOf(
      { offer, subresource, ports: [80] },
      [["Sec-WebSocket-Protocol", protocol]],
      { spdy: defaultSpdyLimits },
    );
    this.ends = ends;
    this.#decoder = decoderFor(new SessionObservers([ends]));
  }

  fromUpstream(chunk: Uint8Array): void {
    this.#decoder.fromNode(chunk, () => {});
  }

  fromDownstream(chunk: Uint8Array): void {
    this.#decoder.fromClient(chunk, () => {});
  }

  get hasResult(): boolean {
    return this.ends.hasResult;
  }

  nodeEnd(how: string): SessionEnd {
    return this.ends.nodeEnd(how);
  }
}

describe("the end observer of a WebSocket session", () => {
  it("knows the status wherever the bytes are cut, and leaves them as they are", () => {
    const bytes = Buffer.concat([
      onChannel(1, ""),
      onChannel(1, "x".repeat(300)),
      frame("", { opcode: OPCODE.PING }),
      // The channel leads the message, in whichever frame its first byte is.
      frame("", { fin: false }),
      frame("\x03", { opcode: OPCODE.CONTINUATION, fin: false }),
      frame(SUCCESS.slice(0, 9), { opcode: OPCODE.CONTINUATION, fin: false }),
      frame("", { opcode: OPCODE.PONG }),
      frame(SUCCESS.slice(9), { opcode: OPCODE.CONTINUATION }),
      encodeClose(1000, ""),
    ]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (lengths) => {
        const observer = new Observed("v5.channel.k8s.io");
        for (let at = 0, turn = 0; at < bytes.byteLength; turn++) {
          const length = lengths[turn % lengths.length] as number;
          const chunk = Buffer.from(bytes.subarray(at, at + length));
          observer.fromUpstream(chunk);
          expect(chunk.equals(bytes.subarray(at, at + length))).toBe(true);
          at += length;
        }
        expect(observer.hasResult).toBe(true);
        expect(observer.nodeEnd(HOW)).toMatchObject({ endedBy: "node", cause: "completed", code: 200 });
      }),
    );
  });

  it("takes output that looks like a status for output", () => {
    const observer = new Observed("v5.channel.k8s.io");
    observer.fromUpstream(onChannel(1, `\x03${SUCCESS}`));
    observer.fromUpstream(encodeClose(1000, ""));
    expect(observer.nodeEnd(HOW)).toMatchObject({
      cause: "upstream-lost",
      message: "the node closed the session with 1000 without a status",
    });
  });

  it("a status that is too large is a failure of the node, and is not kept", () => {
    const observer = new Observed("v5.channel.k8s.io");
    observer.fromUpstream(onChannel(3, "x".repeat(MAX_STATUS_BYTES + 1)));
    expect(observer.nodeEnd(HOW)).toMatchObject({
      cause: "upstream-failed",
      message: expect.stringContaining("too large"),
    });
  });

  it("a status is whole with its last brace, in however many pieces it comes", () => {
    const observer = new Observed("v5.channel.k8s.io");
    const text = `\n ${SUCCESS.replace("{}", '{"name":"}\\\\\\"{"}')}`;
    for (const character of text.slice(0, -1)) observer.fromUpstream(onChannel(3, character));
    expect(observer.hasResult).toBe(false);
    observer.fromUpstream(onChannel(3, text.slice(-1)));
    expect(observer.hasResult).toBe(true);
    expect(observer.nodeEnd(HOW).cause).toBe("completed");
  });

  it("what follows a status changes nothing, wherever reads cut them apart", () => {
    const bytes = onChannel(3, `${SUCCESS}{"status":"Failure"} and more`);
    for (let cut = 1; cut < bytes.byteLength; cut++) {
      const observer = new Observed("v5.channel.k8s.io");
      observer.fromUpstream(Buffer.from(bytes.subarray(0, cut)));
      observer.fromUpstream(Buffer.from(bytes.subarray(cut)));
      expect([observer.hasResult, observer.nodeEnd(HOW).cause]).toEqual([true, "completed"]);
    }
  });

  it.each([
    "channel.k8s.io",
    "base64.channel.k8s.io",
  ] as const)("%s: success is no status, and Close 1000", (version) => {
    const closed = new Observed(version);
    closed.fromUpstream(encodeClose(1000, ""));
    expect(closed.hasResult).toBe(true);
    expect(closed.nodeEnd(HOW).cause).toBe("completed");
    expect(new Observed(version).nodeEnd(HOW).cause).toBe("upstream-lost");
  });

  it("the first Close decides", () => {
    const client = new Observed("v4.channel.k8s.io", "portforward");
    client.fromDownstream(encodeClose(1001, "", 0x12345678));
    client.fromUpstream(encodeClose(1000, ""));
    expect(client.nodeEnd(HOW)).toMatchObject({
      cause: "client-gone",
      message: "the client closed with 1001",
    });
    const node = new Observed("v4.channel.k8s.io", "portforward");
    node.fromUpstream(encodeClose(1000, ""));
    node.fromDownstream(encodeClose(1000, "", 0x12345678));
    expect(node.nodeEnd(HOW).cause).toBe("completed");
  });

  it("of bytes that are no WebSocket knows only how the connection ended", () => {
    const observer = new Observed("v5.channel.k8s.io");
    observer.fromUpstream(Buffer.from("HTTP/1.1 200 OK"));
    observer.fromUpstream(onChannel(3, SUCCESS));
    expect(observer.nodeEnd(HOW)).toMatchObject({ endedBy: "node", cause: "upstream-lost" });
  });
});
