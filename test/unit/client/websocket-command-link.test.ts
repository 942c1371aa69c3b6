import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import type { UpgradedConnection } from "../../../packages/client/src/index.ts";
import { defaultSessionTimes } from "../../../packages/client/src/session-times.ts";
import { WebSocketCommandLink } from "../../../packages/client/src/websocket-command-link.ts";
import { WebSocketFrameDecoder } from "../../../protocols/websocket/index.ts";

it("sends input as base64 where the protocol wants it, each message by itself", () => {
  const messages: Buffer[] = [];
  const decoder = new WebSocketFrameDecoder("server", {
    onMessage: (part, isFirst, isLast) => {
      expect([isFirst, isLast]).toEqual([true, true]);
      messages.push(Buffer.from(part));
    },
    onPing: () => {},
    onPong: () => {},
    onClose: () => {},
  });
  // Memory of frames is used again once it is written.
  const socket = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      decoder.push(chunk);
      done();
    },
  });
  const connection = { socket, head: Buffer.alloc(0) } as unknown as UpgradedConnection;
  const handler = { onOutput: () => {}, onStatus: () => {}, onDrain: () => {}, onEnd: () => {} };
  const link = new WebSocketCommandLink(connection, "v4.base64.channel.k8s.io", handler, defaultSessionTimes);
  link.start(false);
  const input = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  link.sendInput(input);
  const decoded = messages.map((one) => Buffer.from(one.subarray(1).toString(), "base64"));
  expect(Buffer.concat(decoded)).toEqual(input);
  expect(messages.length).toBeGreaterThan(3);
  expect(messages.every((one) => one[0] === "0".charCodeAt(0))).toBe(true);
  link.abort();
});
