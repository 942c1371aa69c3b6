import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { encodeSettings } from "../../../protocols/http2/frame-encoder.ts";
import { HeaderDecoder } from "../../../protocols/http2/hpack/header-decoder.ts";
import {
  encodeFrame,
  encodeHeaderBlock,
  encodeHeaders,
  FRAME,
  FrameDecoder,
} from "../../../protocols/http2/index.ts";
import { SETTING } from "../../../protocols/http2/limits.ts";
import { probe } from "./probe.ts";

const PREFACE_BYTES = 24;
const SERVING = Uint8Array.of(0, 0, 0, 0, 2, 8, 1);
const REFUSED_STREAM = Uint8Array.of(0, 0, 0, 7);

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

interface Peer {
  readonly say: (...frames: Uint8Array[]) => void;
  /** SERVING on that stream. */
  readonly answer: (streamId: number) => void;
}

/** A gRPC server that is told of frames as `HEADERS 1`, and of the end of a request as `call ID BYTES`. */
async function serve(
  onOpen: (peer: Peer) => void,
  onFrame: (what: string, peer: Peer) => void,
): Promise<{ port: number; fields: Map<string, string> }> {
  const fields = new Map<string, string>();
  const server = createServer((socket: Socket) => {
    stops.push(() => socket.destroy());
    socket.on("error", () => {});
    const say = (...frames: Uint8Array[]) => void socket.write(Buffer.concat(frames));
    const answer = (streamId: number) => {
      const head = encodeHeaderBlock([
        [":status", "200"],
        ["content-type", "application/grpc"],
      ]);
      const trailers = encodeHeaderBlock([["grpc-status", "0"]]);
      say(
        encodeHeaders(streamId, head, false),
        encodeFrame(FRAME.DATA, 0, streamId, SERVING),
        encodeHeaders(streamId, trailers, true),
      );
    };
    const peer = { say, answer };
    let bodyBytes = 0;
    const headers = new HeaderDecoder();
    const frames = new FrameDecoder(
      {
        onFrameStart: () => {},
        onData: (_, part) => {
          bodyBytes += part.length;
        },
        onDataEnd: (id, isEnd) => {
          if (isEnd) onFrame(`call ${id} ${bodyBytes}`, peer);
          if (isEnd) bodyBytes = 0;
        },
        onFrame: (type, _, id, payload) => {
          if (type === FRAME.HEADERS)
            for (const [name, value] of headers.decode(payload, 65_536)) fields.set(name, value);
          onFrame(`${Object.keys(FRAME)[type]} ${id}`, peer);
        },
      },
      16_384,
    );
    let skippedBytes = 0;
    socket.on("data", (chunk: Buffer) => {
      const skipped = Math.min(PREFACE_BYTES - skippedBytes, chunk.length);
      skippedBytes += skipped;
      frames.push(chunk.subarray(skipped));
    });
    onOpen(peer);
  });
  stops.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, fields };
}

it("the whole call is there before the server has said a word", async () => {
  const { port } = await serve(
    () => {},
    (what, { say, answer }) => {
      if (what !== "call 1 5") return;
      say(encodeSettings([]));
      answer(1);
    },
  );
  expect(await probe({ grpc: { port } }, { timeoutMs: 1_000 })).toMatchObject({ message: "service healthy" });
});

it("a call that came before the server said that it takes none is made again when it does", async () => {
  const calls: string[] = [];
  const { port } = await serve(
    ({ say }) => say(encodeSettings([[SETTING.MAX_CONCURRENT_STREAMS, 0]])),
    (what, { say, answer }) => {
      if (what.startsWith("call")) calls.push(what);
      if (what === "call 1 5") {
        say(encodeFrame(FRAME.RST_STREAM, 0, 1, REFUSED_STREAM));
        say(encodeSettings([[SETTING.MAX_CONCURRENT_STREAMS, 1]]));
      }
      if (what === "call 3 5") answer(3);
    },
  );
  expect(await probe({ grpc: { port } }, { timeoutMs: 2_000 })).toMatchObject({ message: "service healthy" });
  expect(calls).toEqual(["call 1 5", "call 3 5"]);
});

it("a server that takes no call is connected, and too late", async () => {
  const { port } = await serve(
    ({ say }) => say(encodeSettings([[SETTING.MAX_CONCURRENT_STREAMS, 0]])),
    (what, { say }) => {
      if (what === "call 1 5") say(encodeFrame(FRAME.RST_STREAM, 0, 1, REFUSED_STREAM));
    },
  );
  expect(await probe({ grpc: { port } }, { timeoutMs: 200 })).toMatchObject({
    message: "timeout: health rpc did not complete within 200ms",
    wire: { protocol: "h2c" },
  });
});

it.each([
  ["a name that is longer than a frame", "x".repeat(20_000), 20_009],
  ["a name that fills one", "x".repeat(16_300), 16_308],
])("%s is sent whole", async (_, service, bytes) => {
  const { port } = await serve(
    ({ say }) => say(encodeSettings([])),
    (what, { answer }) => {
      if (what === `call 1 ${bytes}`) answer(1);
    },
  );
  expect(await probe({ grpc: { port, service } })).toMatchObject({ message: "service healthy" });
});

it.each([
  [1_500, /^1[45]\d\dm$/],
  [2 ** 31 * 1_000, /^99999999m$/],
])("with a time-out of %i ms the server is told so in eight digits at most", async (timeoutMs, expected) => {
  const { port, fields } = await serve(
    ({ say }) => say(encodeSettings([])),
    (what, { answer }) => {
      if (what.startsWith("call")) answer(1);
    },
  );
  expect(await probe({ grpc: { port } }, { timeoutMs })).toMatchObject({ message: "service healthy" });
  expect(fields.get("grpc-timeout")).toMatch(expected);
});

it("the same probe names another address, and another version, once it is told so", async () => {
  const first = await serve(
    ({ say }) => say(encodeSettings([])),
    (what, { answer }) => {
      if (what.startsWith("call")) answer(1);
    },
  );
  const grpc = { port: first.port };
  await probe({ grpc });
  expect(first.fields.get(":authority")).toBe(`127.0.0.1:${first.port}`);
  await probe({ grpc }, { target: { host: "localhost" } });
  expect(first.fields.get(":authority")).toBe(`localhost:${first.port}`);
  await probe({ grpc }, { target: { host: "localhost" }, userAgentVersion: "1.99" });
  expect(first.fields.get("user-agent")).toBe("kube-probe/1.99");
});
