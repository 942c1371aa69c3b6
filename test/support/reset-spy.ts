import { once } from "node:events";
import { connect, createServer, type Http2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

type Reset = (code: number) => void;

/** Calls that node:http2 makes from where nothing is being read: a timer, an immediate, a socket's close. */
const BETWEEN_READS = /processImmediate|processTimers|socketOnClose/;

/**
 * Watches every reset of a stream in this process, and returns the stacks of those that may happen
 * while nghttp2 reads. They are undone at the end of the test.
 */
export async function watchResets(): Promise<readonly string[]> {
  const prototype = await handlePrototype();
  const { rstStream } = prototype;
  const { stackTraceLimit } = Error;
  const stacks: string[] = [];
  Error.stackTraceLimit = 100;
  prototype.rstStream = function reset(code) {
    const stack = new Error(`reset with ${code}`).stack ?? "";
    if (!BETWEEN_READS.test(stack)) stacks.push(stack);
    rstStream.call(this, code);
  };
  onTestFinished(() => {
    prototype.rstStream = rstStream;
    Error.stackTraceLimit = stackTraceLimit;
  });
  return stacks;
}

/** What all streams' native handles have in common. */
async function handlePrototype(): Promise<{ rstStream: Reset }> {
  const server = createServer().on("stream", (stream) => stream.respond({}, { endStream: true }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await once(session, "connect");
  const stream = session.request();
  const handle = nativeHandle(stream);
  stream.resume();
  await once(stream, "close");
  session.close();
  server.close();
  return Object.getPrototypeOf(handle) as { rstStream: Reset };
}

function nativeHandle(stream: Http2Stream): object {
  const key = Object.getOwnPropertySymbols(stream).find(({ description }) => description === "kHandle");
  return (stream as unknown as Record<symbol, object>)[key as symbol] as object;
}
