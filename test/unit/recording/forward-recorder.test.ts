import { describe, expect, it } from "vitest";
import { ForwardRecorder } from "../../../src/recording/forward-recorder.ts";
import type { SessionRecording } from "../../../src/recording/session-recording.ts";
import type { SessionStream } from "../../../src/sessions/observers/session-observer.ts";

/** Replaces a recording, and collects the recorded events as text. */
function start(maxOutputBytes = 1e9) {
  const events: string[] = [];
  const ends: unknown[] = [];
  const recording = {
    isRequired: true,
    nowMs: 0,
    begin: () => {},
    fail: () => undefined,
    end: async (end: unknown) => void ends.push(end),
    queue: { event: (_ms: number, code: string, data: string) => events.push(code + data) > 0 },
  };
  const recorder = new ForwardRecorder(recording as unknown as SessionRecording, maxOutputBytes);
  return { recorder, events, ends };
}

const stream = (connection: string, type: "data" | "error" = "data"): SessionStream => ({
  type,
  connection,
  port: "80",
});
const report = {
  endedBy: "client",
  cause: "client-gone",
  code: 200,
  message: "",
  downstreamBytes: 0,
  upstreamBytes: 0,
} as const;

describe("the recorder of a port-forward", () => {
  it("records a connection when both sides have ended it, with the node's error", () => {
    const { recorder, events } = start();
    recorder.onStream(stream("1"));
    recorder.onData(stream("1"), "client", Buffer.from("question"));
    recorder.onStreamEnd(stream("1"), "client");
    recorder.onData(stream("1"), "node", Buffer.from("reply"));
    recorder.onData(stream("1", "error"), "node", Buffer.from("refused"));
    expect(events).toEqual([]);
    recorder.onStreamEnd(stream("1"), "node");
    expect(events).toEqual([
      'p{"port":"80","seconds":0,"bytesToNode":8,"bytesToClient":5,"error":"refused"}',
    ]);
  });

  it("records an error whole, wherever its parts are cut", () => {
    const { recorder, events } = start();
    recorder.onStream(stream("1"));
    for (const byte of Buffer.from("é 🚫")) recorder.onData(stream("1", "error"), "node", Buffer.of(byte));
    for (const side of ["client", "node"] as const) recorder.onStreamEnd(stream("1"), side);
    expect(events).toEqual([expect.stringContaining('"error":"é 🚫"')]);
  });

  it("follows no more connections than its bound", async () => {
    const { recorder, events } = start();
    for (let index = 0; index < 1_001; index++) recorder.onStream(stream(String(index)));
    expect(events).toHaveLength(1);
    await recorder.onEnd(report);
    expect(events).toHaveLength(1_001);
  });

  it("records no more than its bound, and says how many are missing", async () => {
    const { recorder, events, ends } = start(600);
    for (let index = 0; index < 5; index++) recorder.onData(stream(String(index)), "node", Buffer.alloc(10));
    await recorder.onEnd(report);
    expect(events.map((each) => each[0])).toEqual(["p", "p", "m"]);
    expect(events.at(-1)).toBe("mconnections that are not recorded: 3");
    expect(ends).toEqual([{ cause: "client-gone", exitCode: undefined, countedBytes: 50 }]);
  });
});
