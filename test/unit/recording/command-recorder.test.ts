import { expect, it } from "vitest";
import { CommandRecorder } from "../../../src/recording/command-recorder.ts";
import type { SessionRecording } from "../../../src/recording/session-recording.ts";
import { STDIN } from "../../../src/sessions/observers/session-observer.ts";

it("a recording marks when a person joins, and when another person begins to type", () => {
  const events: string[] = [];
  const queue = {
    isFilling: false,
    add: (kind: string, _ms: number, part: Uint8Array) => {
      events.push(`${kind}: ${Buffer.from(part)}`);
      return true;
    },
    event: (_ms: number, code: string, text: string) => void events.push(`${code}: ${text}`),
  };
  const recording = { queue, nowMs: 0, isRequired: false, info: { user: "ana" } };
  const recorder = new CommandRecorder(recording as unknown as SessionRecording, 1_000, {
    input: true,
    archive: false,
  });
  const type = (text: string, by?: string) =>
    recorder.onData(by === undefined ? STDIN : { ...STDIN, by }, "client", Buffer.from(text));
  type("one");
  recorder.onJoin("ben", true);
  type("two", "ben");
  type("three", "ben");
  type("four");
  recorder.onJoin("ben", false);
  expect(events).toEqual([
    "input: one",
    "m: ben joined",
    "m: input of ben",
    "input: two",
    "input: three",
    "m: input of ana",
    "input: four",
    "m: ben left",
  ]);
});
