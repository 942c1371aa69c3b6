import {
  connect as connectHttp2,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { HeaderEdit } from "../../../packages/client/src/http/header-edit.ts";
import { HttpUpstream } from "../../../packages/client/src/http/upstream/http-upstream.ts";
import { Http2Downstream } from "../../../src/http/downstream/http2-downstream.ts";
import { addForwardedOrigin } from "../../../src/http/forwarded-headers.ts";
import { forwardExchange } from "../../../src/http/upstream/http-forwarder.ts";
import { addOwnLines } from "../../../src/ingress/choose-backend.ts";
import { openClient, readToEnd } from "../../support/http/loopback.ts";
import { cleanups, closePairs, startRawPair } from "./http-pair.ts";

afterEach(closePairs);

const ASKED = "a value of the request alone";
const ANSWERED = "a value of the response alone";

/** Edits as the front door makes them. */
const options = {
  editHeaders: (edit: HeaderEdit): HeaderEdit => {
    const origin = { peerAddress: "127.0.0.1", isPeerTrusted: false } as const;
    addForwardedOrigin(edit, { ...origin, protocol: "http", host: "h" });
    return edit;
  },
  editResponseHeaders: (edit: HeaderEdit): void => addOwnLines(edit),
};

const answer = (socket: Socket): void => {
  socket.on("data", () => socket.write(`HTTP/1.1 200 OK\r\nX-B: ${ANSWERED}\r\nContent-Length: 1\r\n\r\nb`));
};

/**
 * Counts the lists to which code outside of Node adds a line with that value, or which it makes of
 * another list that has one.
 */
function countLists(): { readonly with: (value: string) => number; readonly stop: () => void } {
  const lists = new Map<string, Set<unknown>>([
    [ASKED, new Set()],
    [ANSWERED, new Set()],
  ]);
  const see = (list: unknown, elements: readonly unknown[]): void => {
    for (const element of elements) {
      lists.get(element as string)?.add(list);
      if (Array.isArray(element)) lists.get(element[1] as string)?.add(list);
    }
  };
  const prototype = Array.prototype as unknown as Record<string, (...given: unknown[]) => unknown>;
  const makers = ["map", "filter", "slice", "concat", "flat", "flatMap", "splice"];
  const own = new Map(["push", ...makers].map((name) => [name, prototype[name] as () => unknown]));
  for (const [name, method] of own)
    prototype[name] = function counted(this: unknown, ...given): unknown {
      const made = Reflect.apply(method, this, given) as unknown;
      see(name === "push" ? this : made, name === "push" ? given : (made as unknown[]));
      return made;
    };
  return {
    with: (value) => lists.get(value)?.size ?? 0,
    stop: () => {
      for (const [name, method] of own) prototype[name] = method;
    },
  };
}

it("an HTTP/1.1 exchange copies the request's headers once, and the response's once", async () => {
  const { forwarder } = await startRawPair(answer, options);
  const client = await openClient(forwarder.port);
  const counted = countLists();
  let text: string;
  try {
    client.write(`GET / HTTP/1.1\r\nHost: h\r\nX-A: ${ASKED}\r\nConnection: close\r\n\r\n`);
    ({ text } = await readToEnd(client));
  } finally {
    counted.stop();
  }
  expect(text).toContain(`X-B: ${ANSWERED}\r\nContent-Length: 1\r\nServer: sluice`);
  expect(counted.with(ASKED)).toBe(1);
  // The parsed list, and its copy.
  expect(counted.with(ANSWERED)).toBe(2);
});

it("an HTTP/2 exchange does so too; the response's copy is the object that node:http2 sends", async () => {
  const { node } = await startRawPair(answer);
  const upstream = new HttpUpstream({ endpoint: { host: "127.0.0.1", port: node.port } });
  const server = createServer();
  const forward = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    _flags: number,
    raw: string[],
  ): void => {
    const respondError = (error: Error): void => void stream.destroy(error);
    void forwardExchange(new Http2Downstream(stream, headers, raw), { ...options, upstream, respondError });
  };
  server.on("stream", forward);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  cleanups.push(async () => {
    session.destroy();
    upstream.close();
    await new Promise((resolve) => server.close(resolve));
  });
  const counted = countLists();
  try {
    const stream = session.request({ "x-a": ASKED }).resume();
    const answered = new Promise<Record<string, unknown>>((resolve) => stream.once("response", resolve));
    await new Promise((resolve) => stream.once("close", resolve));
    expect(await answered).toMatchObject({ "x-b": ANSWERED, server: "sluice" });
  } finally {
    counted.stop();
  }
  expect(counted.with(ASKED)).toBe(1);
  expect(counted.with(ANSWERED)).toBe(1);
});
