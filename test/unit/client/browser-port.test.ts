import { getEventListeners } from "node:events";
import { afterEach, expect, it, vi } from "vitest";
import { openPort } from "../../../packages/client/src/browser-port.ts";

/** A browser's, as far as one that does not open yet needs. */
class WaitingSocket extends EventTarget {
  static last: WaitingSocket | undefined;
  readyState = 0;
  binaryType = "blob";
  onmessage = null;
  onclose = null;

  constructor() {
    super();
    WaitingSocket.last = this;
  }
  close(): void {
    this.readyState = 2;
  }
}

afterEach(() => vi.unstubAllGlobals());

it.each([
  [
    "is aborted before it opens",
    "aborted",
    (_: WaitingSocket, aborting: AbortController) => aborting.abort(),
  ],
  ["does not open", "handshake", (socket: WaitingSocket) => socket.dispatchEvent(new Event("close"))],
])("a port whose socket %s leaves no listener", async (_, leg, fail) => {
  vi.stubGlobal("WebSocket", WaitingSocket);
  const aborting = new AbortController();
  const opened = openPort({ url: "https://a" }, { pod: "web" }, 80, { signal: aborting.signal });
  const socket = WaitingSocket.last as WaitingSocket;
  fail(socket, aborting);
  await expect(opened).rejects.toMatchObject({ leg });
  const ofSocket = ["open", "close"].flatMap((event) => getEventListeners(socket, event));
  const left = aborting.signal.aborted ? getEventListeners(aborting.signal, "abort") : [];
  expect([...ofSocket, ...left]).toEqual([]);
});
