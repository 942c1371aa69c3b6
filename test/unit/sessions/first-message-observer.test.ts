import { describe, expect, it, onTestFinished, vi } from "vitest";
import { WebSocketCommandDecoder } from "../../../src/sessions/decoders/websocket-command-decoder.ts";
import { CommandEndObserver } from "../../../src/sessions/observers/end-observer.ts";
import { FirstMessageObserver } from "../../../src/sessions/observers/first-message-observer.ts";
import { SessionObservers } from "../../../src/sessions/observers/session-observers.ts";

type FirstMessage = Parameters<ConstructorParameters<typeof FirstMessageObserver>[0]>[0];

// The bound under test.
const MAX_STATUS_BYTES = 4 * 1024;

const frame = (payload: Uint8Array, opcode = 0x82): Buffer => {
  const length =
    payload.byteLength < 126
      ? Buffer.of(payload.byteLength)
      : Buffer.of(126, payload.byteLength >> 8, payload.byteLength & 255);
  return Buffer.concat([Buffer.of(opcode), length, payload]);
};
const message = (channel: number, text: string): Buffer =>
  frame(Buffer.concat([Buffer.of(channel), Buffer.from(text)]));
const status = (fields: object): Buffer => message(3, JSON.stringify(fields));

/** What is learned from these bytes of a node, in parts of this size, and whether the observer sees more. */
function learned(
  bytes: Uint8Array,
  partBytes = bytes.byteLength,
): { messages: FirstMessage[]; isDone: boolean } {
  const messages: FirstMessage[] = [];
  const observer = new FirstMessageObserver((message) => messages.push(message));
  const ends = new CommandEndObserver("v5.channel.k8s.io", "websocket");
  const decoder = new WebSocketCommandDecoder("v5.channel.k8s.io", new SessionObservers([observer]), ends);
  for (let at = 0; at < bytes.byteLength; at += partBytes) {
    decoder.fromNode(bytes.subarray(at, at + partBytes), () => {});
  }
  return { messages, isDone: observer.isDone };
}

const failure = { kind: "failure", text: "no way" };
const output = { kind: "output" };

const FAILURE = JSON.stringify({ status: "Failure", message: "no way" });

describe("a node's first message", () => {
  const opening = [0, 1, 2, 3, 4].map((channel) => message(channel, ""));
  it.each([
    ["output", [message(1, "hello")], output],
    ["output behind what servers open with", [...opening, message(2, "warning")], output],
    ["output behind a PING", [frame(Buffer.from("x"), 0x89), message(1, "hello")], output],
    [
      "a failure",
      [...opening, status({ status: "Failure", reason: "InternalError", message: "no way" })],
      failure,
    ],
    ["a failure behind output", [message(1, "x"), status({ status: "Failure", message: "no way" })], output],
    ["an exit code", [status({ status: "Failure", reason: "NonZeroExitCode", message: "no way" })], output],
    ["success", [status({ status: "Success" })], output],
    ["no Status", [message(3, "oops")], output],
    ["a failure and more behind it", [message(3, `${FAILURE}{"status":"Success"} and more`)], failure],
    ["a failure and much more behind it", [message(3, FAILURE + "x".repeat(MAX_STATUS_BYTES))], failure],
    ["a failure behind white space", [message(3, `\n ${FAILURE}`)], failure],
    ["two failures", [message(3, FAILURE), status({ status: "Failure", message: "another" })], failure],
  ])("%s, however it is cut", (_, messages, word) => {
    const bytes = Buffer.concat(messages);
    for (const partBytes of [1, 2, 7, bytes.byteLength]) {
      expect(learned(bytes, partBytes)).toEqual({ messages: [word], isDone: true });
    }
  });

  it("is not known yet", () => {
    expect(learned(Buffer.concat(opening))).toEqual({ messages: [], isDone: false });
    expect(learned(status({ status: "Failure" }).subarray(0, 10))).toEqual({ messages: [], isDone: false });
  });

  it.each([
    ["a Close", frame(Buffer.of(3, 232), 0x88)],
    ["bytes that are no WebSocket", Buffer.from("HTTP/1.1 500 x")],
    ["PINGs", Buffer.concat(Array.from({ length: 1_000 }, () => frame(Buffer.alloc(100), 0x89)))],
  ])("is not %s", (_, bytes) => {
    expect(learned(bytes, 4_096)).toEqual({ messages: [], isDone: false });
  });

  it("leaves the bytes as they are, and keeps no more of a Status than its bound", () => {
    const bytes = message(3, `{"status":"Failure","message":"${"x".repeat(20_000)}"}`);
    const copy = Buffer.from(bytes);
    expect(learned(bytes)).toEqual({ messages: [output], isDone: true });
    expect(bytes.equals(copy)).toBe(true);
  });
});

describe("a first message in many parts", () => {
  it("is joined once, empty parts included", () => {
    const messages: FirstMessage[] = [];
    const observer = new FirstMessageObserver((message) => messages.push(message));
    const concat = vi.spyOn(Buffer, "concat");
    onTestFinished(() => concat.mockRestore());
    const text = JSON.stringify({ status: "Failure", message: `no "}" way ${"\\{".repeat(500)}` });
    for (const byte of Buffer.from(text)) {
      observer.onStatus(Buffer.of(byte));
      observer.onStatus(new Uint8Array(0));
    }
    expect(messages).toMatchObject([{ kind: "failure", text: expect.stringContaining("way") }]);
    expect(concat).toHaveBeenCalledTimes(1);
  });

  it("is output when it is longer than a Status", () => {
    const messages: FirstMessage[] = [];
    const observer = new FirstMessageObserver((message) => messages.push(message));
    observer.onStatus(Buffer.from('{"a":"'));
    for (let index = 0; index < 5_000 && !observer.isDone; index++) observer.onStatus(Buffer.from("}"));
    expect(messages).toEqual([{ kind: "output" }]);
  });
});
