import { afterEach, describe, expect, it, vi } from "vitest";
import {
  endSession,
  MAX_END_MS,
  readEndRequest,
  readEndResult,
} from "../../../src/sessions/session-actions.ts";
import {
  dayOfSession,
  newReplicaId,
  newSessionId,
  replicaOfSession,
} from "../../../src/sessions/session-id.ts";
import { Sessions } from "../../../src/sessions/sessions.ts";

afterEach(() => vi.useRealTimers());

describe("a session's id", () => {
  it("is a UUID of version 8 that names its replica", () => {
    const replica = newReplicaId();
    const ids = Array.from({ length: 100 }, () => newSessionId(replica));
    expect(new Set(ids).size).toBe(100);
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(replicaOfSession(id)).toBe(replica);
    }
  });

  it("holds the day of its session's start", () => {
    const day = new Date("2026-11-27T00:00:00Z");
    expect(dayOfSession(newSessionId("0a1b2c3d", new Date("2026-11-27T23:59:59.999Z")))).toEqual(day);
    expect(dayOfSession(newSessionId("0a1b2c3d", day))).toEqual(day);
    expect(dayOfSession("0b0f6a52-3f0e-4b9c-9d7c-5f3a3f0e4b9c")).toBeUndefined();
  });

  it.each([
    "0b0f6a52-3f0e-4b9c-9d7c-5f3a3f0e4b9c",
    "",
    "../hello",
    `${newSessionId("0a1b2c3d")}0`,
    newSessionId("0a1b2c3d").toUpperCase(),
  ])("%s names none", (id) => {
    expect(replicaOfSession(id)).toBeUndefined();
  });
});

/** A registry with one session that ends as `cut` has it. */
function registryWith(isOver: boolean, cut: (over: () => void, ...end: unknown[]) => void) {
  const sessions = new Sessions(1);
  const observers = new Set<() => void>();
  const id = sessions.newId();
  sessions.add({
    info: { id } as never,
    isOver,
    downstreamBytes: 0,
    upstreamBytes: 0,
    observe: ({ onEnd }) => {
      const over = () => void onEnd?.({} as never);
      observers.add(over);
      return () => observers.delete(over);
    },
    hold: () => () => {},
    input: () => "no-input",
    joined: () => {},
    cut: (...end) => {
      const over = (): void => {
        for (const observer of observers) observer();
      };
      cut(over, ...end);
    },
  });
  return { sessions, id, observers };
}

describe("the end of a session", () => {
  const FREEZE = { message: "ended by cleo: freeze", status: { status: "Failure", message: "freeze" } };

  it("is a moderator's, with the Status, and is awaited", async () => {
    let over = (): void => {};
    const ends: unknown[] = [];
    const { sessions, id } = registryWith(false, (isOver, ...end) => {
      over = isOver;
      ends.push(end);
    });
    const ended = endSession([new Sessions(1), sessions], { id, ...FREEZE });
    expect(ends).toEqual([["moderator", FREEZE.message, FREEZE.status]]);
    over();
    expect(await ended).toBe("ended");
  });

  it("that does not come in time is under way", async () => {
    vi.useFakeTimers();
    const { sessions, id, observers } = registryWith(false, () => {});
    const ended = endSession([sessions], { id, ...FREEZE });
    await vi.advanceTimersByTimeAsync(MAX_END_MS);
    expect(await ended).toBe("ending");
    expect(observers.size).toBe(0);
  });

  it("has come if only its report is left, and nothing is cut again", async () => {
    const { sessions, id } = registryWith(true, () => expect.unreachable());
    expect(await endSession([sessions], { id, ...FREEZE })).toBe("ended");
  });

  it("of an id that no registry has is unknown", async () => {
    const { sessions } = registryWith(false, () => expect.unreachable());
    expect(await endSession([sessions], { id: sessions.newId(), ...FREEZE })).toBe("unknown");
  });
});

describe("a request from another replica", () => {
  it.each([
    ['{"message":"m"}', { id: "x", message: "m" }],
    [
      '{"message":"m","status":{"status":"Failure"},"more":1}',
      { id: "x", message: "m", status: { status: "Failure" } },
    ],
    [
      '{"message":"m","status":{"status":"Failure","message":1,"code":"403","reason":{},"details":{"causes":[null,{"message":2}]}}}',
      { id: "x", message: "m", status: { status: "Failure", details: { causes: [{}] } } },
    ],
  ])("%s is read", (text, request) => {
    expect(readEndRequest("x", text)).toEqual(request);
  });

  it.each([
    "",
    "[]",
    "1",
    "null",
    "{}",
    '{"message":1}',
    '{"message":"m","status":"x"}',
    '{"message":"m","status":{}}',
    '{"message":"m","status":{"status":"Success"}}',
  ])("%s is refused", (text) => {
    expect(() => readEndRequest("x", text)).toThrow();
  });

  it("has an answer of a closed list", () => {
    expect(readEndResult("ending")).toBe("ending");
    expect(() => readEndResult("done")).toThrow("not a result");
    expect(() => readEndResult(undefined)).toThrow("not a result");
  });
});
