import fc from "fast-check";
import { FrameEncoder, type SpdyHeaders, writeDataHeader } from "../../protocols/spdy/index.ts";
import {
  applyMask,
  encodeClose,
  encodeControlFrame,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeMaskedFrameHeader,
} from "../../protocols/websocket/index.ts";

/** What one side says: the head of its HTTP message, then the protocol it switches to. */
export interface Conversation {
  readonly name: string;
  readonly head: Buffer;
  readonly body: Buffer;
}

const MASK_KEY = 0x1234_5678;
const POD = "/api/v1/namespaces/default/pods/web";

/** A message of a WebSocket client, masked. */
export function maskedMessage(payload: Uint8Array): Buffer {
  const frame = Buffer.alloc(MAX_FRAME_HEADER_BYTES + payload.byteLength);
  const length = writeMaskedFrameHeader(frame, 0, OPCODE.BINARY, payload.byteLength, true, MASK_KEY);
  const masked = frame.subarray(length, length + payload.byteLength);
  masked.set(payload);
  applyMask(masked, MASK_KEY, 0);
  return frame.subarray(0, length + payload.byteLength);
}

export function data(streamId: number, text: string, fin = false): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(8);
  writeDataHeader(header, 0, streamId, payload.byteLength, fin);
  return Buffer.concat([header, payload]);
}

function synStream(encoder: FrameEncoder, streamId: number, headers: SpdyHeaders): Uint8Array {
  const rest = { associatedStreamId: 0, priority: 0, fin: false, unidirectional: false };
  return encoder.encode({ type: "SYN_STREAM", streamId, headers, ...rest });
}

function head(lines: readonly string[]): Buffer {
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

function webSocketHead(path: string, subprotocol: string): Buffer {
  return head([
    `GET ${POD}/${path} HTTP/1.1`,
    "Host: gateway",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Sec-WebSocket-Protocol: ${subprotocol}`,
  ]);
}

function spdyHead(path: string, protocol: string): Buffer {
  return head([
    `POST ${POD}/${path} HTTP/1.1`,
    "Host: gateway",
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
    `X-Stream-Protocol-Version: ${protocol}`,
    "Content-Length: 0",
  ]);
}

const EXEC = "exec?command=cat&stdin=true&stdout=true&container=main";

/** What `kubectl exec -i` sends over WebSocket from 1.30 on: PING, input in messages, the end of stdin, Close. */
export function webSocketExec(): Conversation {
  const body = Buffer.concat([
    encodeControlFrame(OPCODE.PING, Buffer.from("keepalive"), MASK_KEY),
    maskedMessage(Buffer.from("\0hello ")),
    maskedMessage(Buffer.from("\x04{}")),
    maskedMessage(Buffer.from(`\0${"world ".repeat(40)}`)),
    maskedMessage(Buffer.of(255, 0)),
  ]);
  return { name: "exec over WebSocket v5", head: webSocketHead(EXEC, "v5.channel.k8s.io"), body };
}

/** What `kubectl exec -i` sent before: three streams, input, PING, the end of stdin. */
export function spdyExec(): Conversation {
  const encoder = new FrameEncoder();
  const body = Buffer.concat([
    ...["error", "stdin", "stdout"].map((type, index) =>
      synStream(encoder, 2 * index + 1, new Map([["streamtype", type]])),
    ),
    data(3, "hello "),
    encoder.encode({ type: "PING", id: 1 }),
    data(3, "world", true),
  ]);
  return { name: "exec over SPDY v4", head: spdyHead(EXEC, "v4.channel.k8s.io"), body };
}

function portForwardBody(): Buffer {
  const encoder = new FrameEncoder();
  const headersOf = (streamtype: string): SpdyHeaders =>
    new Map([
      ["streamtype", streamtype],
      ["port", "7"],
      ["requestid", "0"],
    ]);
  return Buffer.concat([
    synStream(encoder, 1, headersOf("error")),
    data(1, "", true),
    synStream(encoder, 3, headersOf("data")),
    data(3, "echo this", true),
  ]);
}

export function spdyPortForward(): Conversation {
  const body = portForwardBody();
  return {
    name: "port-forward over SPDY",
    head: spdyHead("portforward", "portforward.k8s.io"),
    body,
  };
}

export function tunnelPortForward(): Conversation {
  const body = Buffer.concat([maskedMessage(portForwardBody()), encodeClose(1000, "", MASK_KEY)]);
  return {
    name: "port-forward through a tunnel",
    head: webSocketHead("portforward", "SPDY/3.1+portforward.k8s.io"),
    body,
  };
}

export const NODE_STATUS = '{"metadata":{},"status":"Success"}';

/** What a kubelet answers to an exec with stdin and stdout: replies, output, a PING, the status, RST and GOAWAY. */
export function kubeletExec(): Conversation {
  const encoder = new FrameEncoder();
  const reset = (streamId: number) => encoder.encode({ type: "RST_STREAM", streamId, status: 5 });
  const body = Buffer.concat([
    ...[1, 3, 5].map((streamId) =>
      encoder.encode({ type: "SYN_REPLY", streamId, fin: false, headers: new Map() }),
    ),
    data(5, "first output, "),
    encoder.encode({ type: "PING", id: 2 }),
    data(5, "more ".repeat(60)),
    data(5, "", true),
    data(1, NODE_STATUS),
    reset(3),
    reset(1),
    encoder.encode({ type: "GOAWAY", lastGoodStreamId: 5, status: 0 }),
  ]);
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
    "X-Stream-Protocol-Version: v4.channel.k8s.io",
  ];
  return { name: "a kubelet's exec", head: head(lines), body };
}

interface Edit {
  readonly kind: "overwrite" | "insert" | "delete";
  /** 0 to 1: where. */
  readonly place: number;
  readonly bytes: Uint8Array;
}

const edits: fc.Arbitrary<Edit[]> = fc.array(
  fc.record({
    kind: fc.constantFrom("overwrite" as const, "insert" as const, "delete" as const),
    place: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 6 }),
  }),
  { maxLength: 4 },
);

function apply(bytes: Buffer, changes: readonly Edit[]): Buffer {
  return changes.reduce((current, { kind, place, bytes: patch }) => {
    const at = Math.floor(place * current.length);
    const skipped = kind === "insert" ? 0 : patch.length;
    const put = kind === "delete" ? Buffer.alloc(0) : patch;
    return Buffer.concat([current.subarray(0, at), put, current.subarray(at + skipped)]);
  }, bytes);
}

/** A valid conversation with a few bytes changed: mostly behind the upgrade, sometimes in its head, sometimes plain noise. */
export function damaged(conversations: readonly Conversation[]): fc.Arbitrary<Conversation> {
  const valid = fc.constantFrom(...conversations);
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(valid, edits)
        .map(([{ name, head, body }, changes]) => ({ name, head, body: apply(body, changes) })),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(valid, edits)
        .map(([{ name, head, body }, changes]) => ({ name, head: apply(head, changes), body })),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(valid, fc.uint8Array({ maxLength: 300 }))
        .map(([{ name, head }, noise]) => ({ name, head, body: Buffer.from(noise) })),
    },
    {
      weight: 1,
      arbitrary: fc
        .uint8Array({ maxLength: 300 })
        .map((noise) => ({ name: "noise", head: Buffer.from(noise), body: Buffer.alloc(0) })),
    },
  );
}
