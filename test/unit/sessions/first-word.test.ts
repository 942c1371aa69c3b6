import { describe, expect, it } from "vitest";
import {
  FirstMessageObserver,
  type FirstWord,
} from "../../../src/sessions/observers/first-message-observer.ts";

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

/** What is said of these bytes, when they come in parts of this size. */
function heard(bytes: Uint8Array, partBytes = bytes.byteLength): { words: FirstWord[]; isDone: boolean } {
  const words: FirstWord[] = [];
  const watch = new FirstMessageObserver((word) => words.push(word));
  let isDone = false;
  for (let at = 0; at < bytes.byteLength && !isDone; at += partBytes) {
    isDone = watch.see(bytes.subarray(at, at + partBytes));
  }
  return { words, isDone };
}

const failure = { kind: "failure", text: "no way" };
const output = { kind: "output" };

describe("a node's first word", () => {
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
  ])("%s, however it is cut", (_, messages, word) => {
    const bytes = Buffer.concat(messages);
    for (const partBytes of [1, 2, 7, bytes.byteLength]) {
      expect(heard(bytes, partBytes)).toEqual({ words: [word], isDone: true });
    }
  });

  it("is not known yet", () => {
    expect(heard(Buffer.concat(opening))).toEqual({ words: [], isDone: false });
    expect(heard(status({ status: "Failure" }).subarray(0, 10))).toEqual({ words: [], isDone: false });
  });

  it.each([
    ["never came", frame(Buffer.of(3, 232), 0x88)],
    ["is no WebSocket", Buffer.from("HTTP/1.1 500 x")],
    [
      "is drowned in PINGs",
      Buffer.concat(Array.from({ length: 1_000 }, () => frame(Buffer.alloc(100), 0x89))),
    ],
  ])("%s: nobody is told, and nobody looks any longer", (_, bytes) => {
    expect(heard(bytes, 4_096)).toEqual({ words: [], isDone: true });
  });

  it("leaves the bytes as they are, and keeps no more of a Status than its bound", () => {
    const bytes = message(3, `{"status":"Failure","message":"${"x".repeat(20_000)}"}`);
    const copy = Buffer.from(bytes);
    expect(heard(bytes)).toEqual({ words: [output], isDone: true });
    expect(bytes.equals(copy)).toBe(true);
  });
});
