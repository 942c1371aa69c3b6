import { afterEach, expect, it, vi } from "vitest";
import { exec } from "../../../packages/client/src/browser.ts";

const MIB = 1024 * 1024;
const STATUS = { status: "Success" };

/** What a page has, and here a test behind it instead of a server. */
class PageSocket {
  static last: PageSocket;
  protocol = "v5.channel.k8s.io";
  bufferedAmount = 0;
  readonly sent: Uint8Array[] = [];
  readonly protocols: readonly string[];
  isClosed = false;
  readyState = 1;
  onopen?: () => void;
  onmessage?: ((event: { data: unknown }) => void) | null;
  onclose?: ((event: { code: number; reason: string }) => void) | null;

  constructor(_url: string, protocols: readonly string[]) {
    this.protocols = protocols;
    PageSocket.last = this;
  }
  send(message: Uint8Array): void {
    this.sent.push(message);
    this.bufferedAmount += message.byteLength;
  }
  close(): void {
    this.isClosed = true;
  }
  comes(channel: number, part: Uint8Array): void {
    this.onmessage?.({ data: Uint8Array.of(channel, ...part).buffer });
  }
}

afterEach(() => vi.unstubAllGlobals());

function start(streams: Parameters<typeof exec>[3], token?: string) {
  vi.stubGlobal("WebSocket", PageSocket);
  const end = exec({ url: "https://gateway", token }, { pod: "web" }, ["ls"], streams);
  end.catch(() => {});
  PageSocket.last.onopen?.();
  return { end, socket: PageSocket.last };
}

it("offers the token as Kubernetes takes it", () => {
  const { socket } = start({}, "a token?");
  expect(socket.protocols).toContain("base64url.bearer.authorization.k8s.io.YSB0b2tlbj8");
});

it("ends a session whose output the page does not take", async () => {
  const { end, socket } = start({ stdout: new WritableStream({ write: () => new Promise(() => {}) }) });
  const message = new Uint8Array(MIB + 1).fill(1).buffer;
  for (let count = 0; count < 64; count += 1) socket.onmessage?.({ data: message });
  expect(socket.isClosed).toBe(false);
  socket.onmessage?.({ data: message });
  await expect(end).rejects.toMatchObject({ name: "SessionError", code: "output-failed" });
  expect(socket.isClosed).toBe(true);
});

it("reads no input while the browser has much that it has not sent", async () => {
  let pulls = 0;
  const stdin = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        pulls += 1;
        if (pulls > 4) controller.close();
        else controller.enqueue(new Uint8Array(MIB));
      },
    },
    { highWaterMark: 0 },
  );
  const { end, socket } = start({ stdin });
  await vi.waitFor(() => expect(socket.bufferedAmount).toBeGreaterThan(MIB));
  expect(pulls).toBe(1);
  const drained = setInterval(() => {
    socket.bufferedAmount = 0;
  }, 1);
  await vi.waitFor(() => expect(socket.sent.at(-1)).toEqual(Uint8Array.of(255, 0)));
  clearInterval(drained);
  socket.comes(3, new TextEncoder().encode(JSON.stringify(STATUS)));
  socket.onclose?.({ code: 1000, reason: "" });
  expect(await end).toEqual({ exitCode: 0, message: "" });
});

it.each([
  [1000, "missing-status"],
  [1006, "connection-lost"],
])("is no success without a status: close %i", async (code, expected) => {
  const { end, socket } = start({});
  socket.onclose?.({ code, reason: "" });
  await expect(end).rejects.toMatchObject({ name: "SessionError", code: expected });
});

it("ends when its signal fires, while it reads its input", async () => {
  const leaving = new AbortController();
  const stdin = new ReadableStream<Uint8Array>();
  const { end, socket } = start({ stdin, signal: leaving.signal });
  leaving.abort();
  await expect(end).rejects.toMatchObject({ name: "SessionError", code: "aborted" });
  expect(socket.isClosed).toBe(true);
  await vi.waitFor(() => expect(stdin.locked).toBe(false));
});
