import { EventEmitter } from "node:events";
import type { Http2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchHttp2Session } from "../../../src/http/watch-http2-session.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A session whose socket does not read and has written everything, at each look. */
function watched(bytes: { read: number; written: number }) {
  const ended: string[] = [];
  const session = Object.assign(new EventEmitter(), {
    destroyed: false,
    destroy: () => ended.push("session"),
  });
  const handle = {
    readStart: () => 0,
    readStop: () => {},
    writeQueueSize: 0,
    get bytesRead() {
      return bytes.read;
    },
    get bytesWritten() {
      return bytes.written;
    },
  };
  const socket = { _handle: handle, destroyed: false, destroy: () => ended.push("socket") };
  watchHttp2Session(session as unknown as Http2Session, socket as unknown as Duplex);
  return { ended, leave: () => session.emit("close") };
}

it("ends a session that neither reads nor writes", () => {
  const { ended, leave } = watched({ read: 10, written: 10 });
  vi.advanceTimersByTime(1_000);
  leave();
  expect(ended.slice(0, 2)).toEqual(["session", "socket"]);
});

it.each(["read", "written"] as const)("leaves one that has %s bytes between two looks", (which) => {
  const bytes = { read: 10, written: 10 };
  const { ended, leave } = watched(bytes);
  for (let at = 0; at < 5_000; at += 10) {
    bytes[which] += 1;
    vi.advanceTimersByTime(10);
  }
  leave();
  expect(ended).toEqual([]);
});
