import { EventEmitter } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { containEvents, onFault, reportFault } from "../../../packages/client/src/observability/faults.ts";
import { observeFaults } from "../../../src/app/uncaught-exceptions.ts";

// The bounds under test.
const MAX_LOGGED_FAULTS = 60;
const LOGGED_FAULTS_WINDOW_MS = 60_000;

function reported(): unknown[] {
  const faults: unknown[] = [];
  onTestFinished(onFault((where, error) => void faults.push([where, (error as Error).message])));
  return faults;
}

describe("containEvents", () => {
  it.each([0, 1, 2, 3, 4])("hands on %i arguments, as many as there are", (count) => {
    const emitter = new EventEmitter();
    containEvents(emitter, "session", () => {});
    const seen: unknown[][] = [];
    emitter.on("event", (...args) => void seen.push(args));
    const sent = Array.from({ length: count }, (_, at) => at);
    expect(emitter.emit("event", ...sent)).toBe(true);
    expect(emitter.emit("unheard", ...sent)).toBe(false);
    expect(seen).toEqual([sent]);
  });

  it("ends the last owner by what a listener throws, and keeps an emitter's own emit", () => {
    const faults = reported();
    const events: unknown[] = [];
    class Recording extends EventEmitter {
      override emit(event: string | symbol, ...args: unknown[]): boolean {
        events.push(event);
        return super.emit(event, ...args);
      }
    }
    const emitter = new Recording();
    const ended: string[] = [];
    containEvents(emitter, "listener", () => void ended.push("first"));
    containEvents(emitter, "session", () => void ended.push("second"));
    emitter.on("data", () => {
      throw new Error("broken");
    });
    expect(emitter.emit("data", "x")).toBe(true);
    expect([faults, ended]).toEqual([[["session", "broken"]], ["second"]]);
    expect(events).toContain("data");
  });
});

it("faults are logged so often in a minute, and counted always", () => {
  let nowMs = 0;
  let counted = 0;
  const lines: Record<string, unknown>[] = [];
  const logger = { error: (fields: Record<string, unknown>) => void lines.push(fields) };
  const metrics = {
    internalError: () => {
      counted += 1;
    },
  };
  onTestFinished(observeFaults(logger, metrics, () => nowMs));
  for (let i = 0; i < MAX_LOGGED_FAULTS + 40; i++) reportFault("request", new Error(`fault ${i}`));
  expect([lines.length, counted]).toEqual([MAX_LOGGED_FAULTS, MAX_LOGGED_FAULTS + 40]);
  nowMs += LOGGED_FAULTS_WINDOW_MS;
  reportFault("request", new Error("later"));
  reportFault("request", new Error("and later"));
  expect(lines.slice(MAX_LOGGED_FAULTS).map(({ unlogged }) => unlogged)).toEqual([40, undefined]);
});
