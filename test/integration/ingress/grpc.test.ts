import { once } from "node:events";
import {
  type ClientHttp2Stream,
  constants,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
} from "node:http2";
import type { AddressInfo } from "node:net";
import {
  type Client,
  credentials,
  Metadata,
  makeClientConstructor,
  Server,
  ServerCredentials,
  status,
} from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { connectHttp2 } from "../../support/http2-client.ts";

const bytes = (value: Buffer): Buffer => value;
const method = (path: string, requestStream: boolean, responseStream: boolean) => ({
  path,
  requestStream,
  responseStream,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
});
const SERVICE = {
  unary: method("/test.Echo/Unary", false, false),
  fails: method("/test.Echo/Fails", false, false),
  failsLate: method("/test.Echo/FailsLate", false, true),
  both: method("/test.Echo/Both", true, true),
};
const EchoClient = makeClientConstructor(
  { ...SERVICE, unknown: method("/test.Echo/Unknown", false, false) },
  "Echo",
);

/** A server of grpc-js behind the front door, and a client of grpc-js in front of it. */
async function startEcho(): Promise<{
  client: Client & Record<string, (...args: unknown[]) => never>;
  door: FrontDoor;
}> {
  const server = new Server();
  const teapot = { code: status.FAILED_PRECONDITION, details: "a teapot: ö %" };
  server.addService(SERVICE, {
    unary: (
      call: { request: Buffer; metadata: Metadata; sendMetadata(sent: Metadata): void },
      done: (error: null, answer: Buffer, trailers: Metadata) => void,
    ) => {
      const initial = new Metadata();
      initial.set("x-initial", String(call.metadata.get("x-sent")[0]));
      call.sendMetadata(initial);
      const trailers = new Metadata();
      trailers.set("x-trailing-bin", Buffer.from([0, 1, 0xff]));
      done(null, call.request, trailers);
    },
    fails: (_call: unknown, done: (error: object) => void) => {
      const metadata = new Metadata();
      metadata.set("x-why", "because");
      done({ ...teapot, metadata });
    },
    failsLate: (call: {
      request: Buffer;
      write(part: Buffer): void;
      emit(name: string, error: object): void;
    }) => {
      call.write(call.request);
      call.emit("error", teapot);
    },
    both: (call: {
      on(name: string, heard: (part: Buffer) => void): void;
      write(part: Buffer): void;
      end(): void;
    }) => {
      call.on("data", (part) => call.write(part));
      call.on("end", () => call.end());
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  onTestFinished(() => server.forceShutdown());
  const door = await doorTo(port);
  const client = new EchoClient(`127.0.0.1:${door.httpPort}`, credentials.createInsecure());
  onTestFinished(() => client.close());
  return { client: client as never, door };
}

async function doorTo(port: number): Promise<FrontDoor> {
  const door = await FrontDoor.start([
    ...serviceObjects("app", [{ port }], { appProtocol: "kubernetes.io/h2c" }),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  onTestFinished(() => door.stop());
  return door;
}

describe("gRPC through the front door", () => {
  it("a call has its metadata, its answer and its trailers", async () => {
    const { client } = await startEcho();
    const sent = new Metadata();
    sent.set("x-sent", "hello");
    const seen: Record<string, unknown> = {};
    await new Promise<void>((resolve, reject) => {
      const call = client.unary?.(Buffer.from("question"), sent, (error: Error | null, answer: Buffer) => {
        Object.assign(seen, { answer: answer?.toString() });
        if (error) reject(error);
      }) as unknown as { on(name: string, heard: (value: never) => void): void };
      call.on("metadata", (metadata: Metadata) =>
        Object.assign(seen, { initial: metadata.get("x-initial") }),
      );
      call.on("status", (ended: { code: number; metadata: Metadata }) => {
        Object.assign(seen, { code: ended.code, trailing: ended.metadata.get("x-trailing-bin") });
        resolve();
      });
    });
    expect(seen).toEqual({
      answer: "question",
      initial: ["hello"],
      code: status.OK,
      trailing: [Buffer.from([0, 1, 0xff])],
    });
  });

  it.each([
    ["fails", status.FAILED_PRECONDITION, "a teapot: ö %", ["because"]],
    ["unknown", status.UNIMPLEMENTED, expect.stringContaining("/test.Echo/Unknown"), []],
  ])("a call that %s at once has its status, message and metadata", async (name, code, details, why) => {
    const { client } = await startEcho();
    const error = await new Promise<{ code: number; details: string; metadata: Metadata }>((resolve) => {
      client[name]?.(Buffer.from("x"), (failed: never) => resolve(failed));
    });
    expect([error.code, error.details, error.metadata.get("x-why")]).toEqual([code, details, why]);
  });

  it("a stream both ways, and one that fails behind its first message", async () => {
    const { client } = await startEcho();
    const both = client.both?.() as unknown as NodeJS.ReadWriteStream;
    const heard: string[] = [];
    both.on("data", (part: Buffer) => {
      heard.push(part.toString());
      if (heard.length < 20) both.write(Buffer.from(`message ${heard.length}`));
      else both.end();
    });
    both.write(Buffer.from("message 0"));
    await once(both, "end");
    expect(heard).toEqual(Array.from({ length: 20 }, (_, index) => `message ${index}`));
    const late = client.failsLate?.(Buffer.from("first")) as unknown as NodeJS.ReadableStream;
    const parts: string[] = [];
    late.on("data", (part: Buffer) => parts.push(part.toString()));
    const [error] = await once(late, "error");
    expect([parts, error.code]).toEqual([["first"], status.FAILED_PRECONDITION]);
  });
});

async function headOf(stream: ClientHttp2Stream): Promise<[IncomingHttpHeaders, boolean, string[]]> {
  const frames: string[] = [];
  stream.on("data", () => frames.push("data")).on("trailers", () => frames.push("trailers"));
  stream.end();
  const [headers, flags] = (await once(stream, "response")) as [IncomingHttpHeaders, number];
  stream.resume();
  await once(stream, "close");
  return [headers, (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0, frames];
}

describe("the end of a response", () => {
  const call = { ":method": "POST", ":authority": "a", te: "trailers", "content-type": "application/grpc" };

  it("trailers alone stay one HEADERS frame with END_STREAM", async () => {
    const { door } = await startEcho();
    const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
    onTestFinished(() => session.destroy());
    const [headers, isWhole, frames] = await headOf(
      session.request({ ":path": "/test.Echo/Unknown", ...call }),
    );
    expect(headers).toMatchObject({ ":status": 200, "grpc-status": "12" });
    expect([isWhole, frames]).toEqual([true, []]);
  });

  it("a body that is empty stays one: the head does not end the stream", async () => {
    const server = createHttp2Server();
    server.on("stream", (stream) => {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const door = await doorTo((server.address() as AddressInfo).port);
    const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
    onTestFinished(() => session.destroy());
    const [, isWhole, frames] = await headOf(session.request({ ":path": "/", ...call }));
    expect([isWhole, frames]).toEqual([false, ["trailers"]]);
  });
});
