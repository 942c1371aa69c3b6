import { describe, expect, it } from "vitest";
import { encodeSettings } from "../../../../protocols/http2/frame-encoder.ts";
import {
  ClientConnection,
  encodeFirstRequest,
  encodeFrame,
  encodeHeaderBlock,
  encodeHeaders,
  FRAME,
  FrameDecoder,
  type HeaderEntry,
} from "../../../../protocols/http2/index.ts";
import { FLAGS, SETTING } from "../../../../protocols/http2/limits.ts";

const NOTHING = new Uint8Array(0);
const GET = encodeHeaderBlock([[":method", "GET"]]);
const uint32 = (...values: number[]) => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return Uint8Array.from(bytes);
};
const settings = (...values: [number, number][]) => encodeSettings(values);
const block = (...fields: HeaderEntry[]) => encodeHeaderBlock(fields);
const head = (status = "200", isEnd = false, ...fields: HeaderEntry[]) =>
  encodeHeaders(1, block([":status", status], ...fields), isEnd);
const data = (bytes: number, isEnd = false, id = 1) =>
  encodeFrame(FRAME.DATA, isEnd ? FLAGS.END_STREAM : 0, id, new Uint8Array(bytes));

/** A connection whose request has been sent, what it tells, and the frames that it sends. */
function connected(body?: Uint8Array, maxHeaderListBytes = 4_096) {
  const told: string[] = [];
  const sent: string[] = [];
  const frames = new FrameDecoder(
    {
      onFrameStart: () => {},
      onData: (id, part) => sent.push(`DATA ${id} ${part.length}`),
      onDataEnd: (id, isEnd) => {
        if (isEnd) sent.push(`END ${id}`);
      },
      onFrame: (type, flags, id, payload) =>
        sent.push(`${Object.keys(FRAME)[type]} ${flags} ${id} ${Buffer.from(payload).toString("hex")}`),
    },
    16_384,
  );
  const connection = new ClientConnection(
    {
      onSettings: () => told.push("settings"),
      onHead: ({ status, fields }) => told.push(`head ${status} ${fields.join(";")}`),
      onData: (part) => told.push(`data ${part.length}`),
      onTrailers: (fields) => told.push(`trailers ${fields.join(";")}`),
      onEnd: (isByData) => told.push(isByData ? "end by data" : "end"),
      onReset: (code) => told.push(`reset ${code}`),
      onGoaway: (last, code, debug) => told.push(`goaway ${last} ${code} ${Buffer.from(debug)}`),
    },
    (bytes) => frames.push(bytes),
    { maxFrameBytes: 16_384, maxHeaderListBytes, maxContinuationFrames: 3 },
  );
  connection.request(encodeHeaders(connection.nextStreamId, GET, body === undefined), body);
  sent.length = 0;
  const push = (...parts: Uint8Array[]) => connection.push(Buffer.concat(parts));
  return { connection, push, told, sent };
}

describe("an answer", () => {
  it("is a head, data, trailers and an end; interim heads are nobody's business", () => {
    const { push, told, sent } = connected();
    const trailers = encodeHeaders(1, block(["grpc-status", "0"]), true);
    push(settings(), head("103"), head("200", false, ["a", "b"]), data(5), trailers);
    expect(told).toEqual(["settings", "head 200 a,b", "data 5", "trailers grpc-status,0", "end"]);
    expect(sent).toEqual(["SETTINGS 1 0 "]);
  });

  it("may be a head alone, or a reset, or a farewell", () => {
    const alone = connected();
    alone.push(settings(), head("204", true));
    expect(alone.told).toEqual(["settings", "head 204 ", "end"]);
    const reset = connected();
    reset.push(settings(), encodeFrame(FRAME.RST_STREAM, 0, 1, uint32(7)), head(), data(1));
    expect(reset.told).toEqual(["settings", "reset 7"]);
    const farewell = connected();
    farewell.push(
      settings(),
      encodeFrame(FRAME.GOAWAY, 0, 0, Buffer.concat([uint32(3, 11), Buffer.from("no")])),
    );
    expect(farewell.told).toEqual(["settings", "goaway 3 11 no"]);
  });

  it("may have its head in several frames, padded and with a priority", () => {
    const { push, told } = connected();
    const whole = block([":status", "200"], ["name", "v".repeat(50)]);
    const first = Uint8Array.of(2, ...uint32(0), 9, ...whole.subarray(0, 10), 0, 0);
    push(
      settings(),
      encodeFrame(FRAME.HEADERS, FLAGS.PADDED | FLAGS.PRIORITY | FLAGS.END_STREAM, 1, first),
      encodeFrame(FRAME.CONTINUATION, 0, 1, whole.subarray(10, 20)),
      encodeFrame(FRAME.CONTINUATION, FLAGS.END_HEADERS, 1, whole.subarray(20)),
    );
    expect(told).toEqual(["settings", `head 200 name,${"v".repeat(50)}`, "end"]);
  });

  it("may break the protocol in ways that are told as they are", () => {
    const { push, told } = connected();
    push(settings(), data(1), encodeHeaders(1, block(["a", "b"]), false), data(2, true));
    expect(told).toEqual(["settings", "data 1", "head undefined a,b", "data 2", "end by data"]);
  });

  it("a PING is answered, its answer is not", () => {
    const { push, sent } = connected();
    const eight = Uint8Array.from(Buffer.from("12345678"));
    push(settings(), encodeFrame(FRAME.PING, 0, 0, eight), encodeFrame(FRAME.PING, FLAGS.ACK, 0, eight));
    expect(sent).toEqual(["SETTINGS 1 0 ", "PING 1 0 3132333435363738"]);
  });

  it("a second request is stream 3", () => {
    const { connection, push, told } = connected();
    push(settings(), head("200", true));
    connection.request(encodeHeaders(connection.nextStreamId, GET, true));
    push(encodeHeaders(3, block([":status", "201"]), true));
    expect(told.slice(3)).toEqual(["head 201 ", "end"]);
  });
});

describe("flow control", () => {
  it("room is given back when half of it is used", () => {
    const { push, sent } = connected();
    push(settings(), head());
    sent.length = 0;
    push(data(16_384), data(16_383));
    expect(sent).toEqual([]);
    push(data(1));
    expect(sent).toEqual(["WINDOW_UPDATE 0 0 00008000", "WINDOW_UPDATE 0 1 00008000"]);
  });

  it("a body waits for the server's room", () => {
    const { push, sent } = connected(new Uint8Array(70_000));
    // 65,535 bytes have left with the request.
    push(settings());
    expect(sent).toEqual(["SETTINGS 1 0 "]);
    push(encodeFrame(FRAME.WINDOW_UPDATE, 0, 1, uint32(4_000)));
    expect(sent).toHaveLength(1);
    push(encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, uint32(10_000)));
    expect(sent.slice(1)).toEqual(["DATA 1 4000"]);
    push(settings([SETTING.INITIAL_WINDOW_SIZE, 70_000]));
    expect(sent.slice(3)).toEqual(["DATA 1 465", "END 1"]);
  });
});

describe("what a server may not do", () => {
  const PROTOCOL = { fault: "connection", code: 1 };
  const STREAM = { fault: "stream", code: 1 };
  const FRAME_SIZE = { fault: "connection", code: 6 };
  const FLOW = { fault: "connection", code: 3 };
  const TOO_MANY = { fault: "header-list-too-large" };
  const half = encodeFrame(FRAME.HEADERS, 0, 1, block([":status", "200"]));
  const filler = encodeFrame(FRAME.CONTINUATION, 0, 1, new Uint8Array(1_500));
  const small = encodeFrame(FRAME.CONTINUATION, 0, 1, new Uint8Array(1));
  const empty = encodeFrame(FRAME.CONTINUATION, 0, 1, NOTHING);

  it.each<[string, object, Uint8Array[]]>([
    ["begin without SETTINGS", PROTOCOL, [head()]],
    ["SETTINGS on a stream", PROTOCOL, [encodeFrame(FRAME.SETTINGS, 0, 1, NOTHING)]],
    ["an ACK with settings", FRAME_SIZE, [encodeFrame(FRAME.SETTINGS, 1, 0, new Uint8Array(6))]],
    ["a window of 2^31", FLOW, [settings([SETTING.INITIAL_WINDOW_SIZE, 2 ** 31])]],
    ["data for a stream nobody opened", PROTOCOL, [settings(), data(1, false, 3)]],
    ["data for its own streams", PROTOCOL, [settings(), data(1, false, 2)]],
    ["a head for stream 0", PROTOCOL, [settings(), encodeHeaders(0, block([":status", "200"]), true)]],
    ["a push", PROTOCOL, [settings(), encodeFrame(FRAME.PUSH_PROMISE, 4, 1, uint32(2))]],
    ["a CONTINUATION of nothing", PROTOCOL, [settings(), filler]],
    ["a frame within a header block", PROTOCOL, [settings(), half, encodeFrame(200, 0, 0, NOTHING)]],
    [
      "another stream's CONTINUATION",
      PROTOCOL,
      [settings(), half, encodeFrame(FRAME.CONTINUATION, 4, 3, NOTHING)],
    ],
    ["a header block without end", TOO_MANY, [settings(), half, filler, filler, filler]],
    ["a header block in endless small frames", TOO_MANY, [settings(), half, ...new Array(4).fill(small)]],
    ["a header block in endless empty frames", TOO_MANY, [settings(), half, ...new Array(4).fill(empty)]],
    ["interim heads without end", TOO_MANY, [settings(), ...new Array(200).fill(head("103"))]],
    [
      "padding longer than the frame",
      PROTOCOL,
      [settings(), encodeFrame(FRAME.HEADERS, 12, 1, Uint8Array.of(9, 1))],
    ],
    [
      "trailers that are not the end",
      PROTOCOL,
      [settings(), head(), encodeHeaders(1, block(["a", "b"]), false)],
    ],
    ["a pseudo-header in trailers", STREAM, [settings(), head(), head("200", true)]],
    ["a status that is no number", STREAM, [settings(), head("2x0")]],
    ["an unknown pseudo-header", STREAM, [settings(), encodeHeaders(1, block([":path", "/"]), true)]],
    ["an interim end", STREAM, [settings(), head("103", true)]],
    [
      "a RST_STREAM of three bytes",
      FRAME_SIZE,
      [settings(), encodeFrame(FRAME.RST_STREAM, 0, 1, new Uint8Array(3))],
    ],
    ["a RST_STREAM of nothing", PROTOCOL, [settings(), encodeFrame(FRAME.RST_STREAM, 0, 3, uint32(1))]],
    ["a GOAWAY of four bytes", FRAME_SIZE, [settings(), encodeFrame(FRAME.GOAWAY, 0, 0, uint32(1))]],
    ["a PING of four bytes", FRAME_SIZE, [settings(), encodeFrame(FRAME.PING, 0, 0, uint32(1))]],
    ["no room at all", PROTOCOL, [settings(), encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, uint32(0))]],
    ["no room on a stream", STREAM, [settings(), encodeFrame(FRAME.WINDOW_UPDATE, 0, 1, uint32(0))]],
    ["too much room", FLOW, [settings(), encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff))]],
    ["a PRIORITY of four bytes", FRAME_SIZE, [settings(), encodeFrame(FRAME.PRIORITY, 0, 1, uint32(1))]],
  ])("%s", (_, fault, parts) => {
    const { push } = connected();
    expect(() => push(...parts)).toThrow(expect.objectContaining({ name: "Http2Error", ...fault }));
  });

  it("random bytes, and a conversation with random bytes in it, end in nothing worse", () => {
    const valid = Buffer.concat([settings(), head("200", false, ["a", "b"]), data(20), head("200", true)]);
    for (let round = 0; round < 3_000; round++) {
      const bytes = round % 2 === 0 ? Buffer.from(valid) : Buffer.alloc(200);
      const changes = round % 2 === 0 ? 3 : bytes.length;
      for (let change = 0; change < changes; change++) {
        bytes[Math.floor(Math.random() * bytes.length)] = Math.floor(Math.random() * 256);
      }
      const { connection } = connected();
      try {
        for (let at = 0; at < bytes.length; at += 7) connection.push(bytes.subarray(at, at + 7));
      } catch (error) {
        expect((error as Error).name, bytes.toString("hex")).toBe("Http2Error");
      }
    }
  });
});

describe("a request that is left alone", () => {
  it("is nobody's business any more, and the next one is answered", () => {
    const { connection, push, told, sent } = connected();
    push(settings());
    connection.forget();
    push(head(), data(5), encodeFrame(FRAME.RST_STREAM, 0, 1, uint32(7)));
    expect(told).toEqual(["settings"]);
    connection.request(encodeHeaders(connection.nextStreamId, GET, true));
    expect(sent.at(-1)).toMatch(/^HEADERS 5 3 /);
    push(encodeHeaders(3, block([":status", "204"]), true));
    expect(told).toEqual(["settings", "head 204 ", "end"]);
  });
});

describe("a first request that was made before", () => {
  it("has the preface, and its body counts against what the server takes", () => {
    const sent: Uint8Array[] = [];
    const nothing = () => {};
    const handler = {
      onSettings: nothing,
      onHead: nothing,
      onData: nothing,
      onTrailers: nothing,
      onEnd: nothing,
      onReset: nothing,
      onGoaway: nothing,
    };
    const connection = new ClientConnection(handler, (bytes) => sent.push(bytes));
    const first = encodeFirstRequest(encodeHeaders(1, GET, false), new Uint8Array(16_000));
    expect(Buffer.from(first).toString("latin1").startsWith("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).toBe(true);
    connection.begin(first, 16_000);
    connection.forget();
    connection.request(encodeHeaders(3, GET, false), new Uint8Array(60_000));
    const bodyBytes = sent.slice(2).reduce((bytes, frame) => bytes + frame.length - 9, 0);
    expect(sent[0]).toBe(first);
    expect(bodyBytes).toBe(65_535 - 16_000);
  });
});
