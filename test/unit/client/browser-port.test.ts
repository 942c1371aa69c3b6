import { getEventListeners } from "node:events";
import { afterEach, expect, it, vi } from "vitest";
import { openPort } from "../../../packages/client/src/browser.ts";

const MIB = 1024 * 1024;

/** What a page has, and here a test behind it instead of a server. */
class PageSocket extends EventTarget {
  static last: PageSocket;
  readyState = 1;
  bufferedAmount = 0;
  readonly sent: Uint8Array[] = [];
  readonly url: string;
  readonly protocols: readonly string[];
  onmessage?: ((event: { data: unknown }) => void) | null;
  onclose?: ((event: { code: number; reason: string }) => void) | null;

  constructor(url: string, protocols: readonly string[]) {
    super();
    this.url = url;
    this.protocols = protocols;
    PageSocket.last = this;
  }
  send(message: Uint8Array): void {
    this.sent.push(message);
  }
  close(): void {
    this.readyState = 3;
  }
  comes(channel: number, ...part: number[]): void {
    this.onmessage?.({ data: Uint8Array.of(channel, ...part).buffer });
  }
}

afterEach(() => vi.unstubAllGlobals());

async function start(signal?: AbortSignal) {
  vi.stubGlobal("WebSocket", PageSocket);
  const opening = openPort({ url: "http://gateway/", namespace: "ns" }, { pod: "web" }, 8080, { signal });
  PageSocket.last.dispatchEvent(new Event("open"));
  return { ...(await opening), socket: PageSocket.last };
}

it("asks for one port without SPDY", async () => {
  const { socket } = await start();
  expect(socket.url).toBe("ws://gateway/api/v1/namespaces/ns/pods/web/portforward?ports=8080");
  expect(socket.protocols).toEqual(["v4.channel.k8s.io"]);
});

it("takes the port from each channel's beginning, however it is cut", async () => {
  const { socket, readable } = await start();
  socket.comes(0, 0x90);
  socket.comes(1, 0x90, 0x1f);
  socket.comes(0, 0x1f, 1, 2);
  socket.comes(0, 3);
  socket.onclose?.({ code: 1000, reason: "" });
  expect(new Uint8Array(await new Response(readable).arrayBuffer())).toEqual(Uint8Array.of(1, 2, 3));
});

it("fails with the server's text", async () => {
  const { socket, readable } = await start();
  socket.comes(1, 0x90, 0x1f);
  socket.comes(1, ...new TextEncoder().encode("connection refused"));
  socket.onclose?.({ code: 1000, reason: "" });
  const read = readable.getReader().read();
  await expect(read).rejects.toMatchObject({ code: "remote-failure", message: "connection refused" });
});

it("does not call a lost connection an end", async () => {
  const { socket, readable, writable } = await start();
  socket.readyState = 3;
  socket.onclose?.({ code: 1006, reason: "" });
  await expect(readable.getReader().read()).rejects.toMatchObject({ code: "connection-lost" });
  await expect(writable.getWriter().write(Uint8Array.of(1))).rejects.toMatchObject({ code: "remote-closed" });
});

it("ends a connection whose data the page does not take", async () => {
  const { socket, readable } = await start();
  socket.comes(0, 0x90, 0x1f);
  const message = new Uint8Array(MIB + 1).buffer;
  for (let count = 0; count < 64; count += 1) socket.onmessage?.({ data: message });
  expect(socket.readyState).toBe(1);
  socket.onmessage?.({ data: message });
  expect(socket.readyState).toBe(3);
  await expect(readable.getReader().read()).rejects.toMatchObject({ code: "output-failed" });
});

it("sends what is written in messages of a frame's size", async () => {
  const { socket, writable } = await start();
  await writable.getWriter().write(new Uint8Array(40_000));
  expect(socket.sent.map(({ byteLength }) => byteLength)).toEqual([32 * 1024 - 8, 40_000 - 32 * 1024 + 10]);
});

it("ends by its reader, and by its signal", async () => {
  const first = await start();
  await first.readable.cancel();
  expect(first.socket.readyState).toBe(3);
  const leaving = new AbortController();
  const { socket, readable } = await start(leaving.signal);
  leaving.abort();
  expect(socket.readyState).toBe(3);
  await expect(readable.getReader().read()).rejects.toMatchObject({ code: "aborted" });
});

it.each([
  ["is aborted before it opens", "aborted", (_: PageSocket, leaving: AbortController) => leaving.abort()],
  ["does not open", "handshake", (socket: PageSocket) => socket.dispatchEvent(new Event("close"))],
])("leaves no listener at a socket that %s", async (_, leg, fail) => {
  vi.stubGlobal("WebSocket", PageSocket);
  const leaving = new AbortController();
  const opened = openPort({ url: "http://gateway/" }, { pod: "web" }, 80, { signal: leaving.signal });
  const socket = PageSocket.last;
  fail(socket, leaving);
  await expect(opened).rejects.toMatchObject({ leg });
  const ofSocket = ["open", "close"].flatMap((event) => getEventListeners(socket, event));
  const ofSignal = leaving.signal.aborted ? getEventListeners(leaving.signal, "abort") : [];
  expect([...ofSocket, ...ofSignal]).toEqual([]);
});
