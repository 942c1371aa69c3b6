import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ObservedSession, SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import type { InputResult, SessionReport } from "../../../src/sessions/session.ts";
import {
  MAX_JOINED_STATUS_BYTES,
  readJoinAnswer,
  readJoinRequest,
  SessionJoins,
} from "../../../src/sessions/session-joins.ts";
import { Sessions } from "../../../src/sessions/sessions.ts";

// The bound under test.
const MAX_JOINER_SILENCE_MS = 5_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

const REPORT: SessionReport = {
  endedBy: "gateway",
  cause: "moderator",
  code: 403,
  message: "the session was ended by cleo",
  downstreamBytes: 0,
  upstreamBytes: 0,
};

/** A session that takes input, as its carrier answers. */
function running() {
  const sessions = new Sessions(1);
  const observers = new Set<SessionObserver>();
  const id = sessions.newId();
  const state = {
    isOver: false,
    answer: "taken" as InputResult,
    typed: [] as string[],
    heard: [] as string[],
  };
  const session = {
    info: { id } as ObservedSession["info"],
    get isOver() {
      return state.isOver;
    },
    downstreamBytes: 0,
    upstreamBytes: 0,
    cut: () => {},
    hold: () => () => {},
    observe: (observer: SessionObserver) => {
      observers.add(observer);
      return () => void observers.delete(observer);
    },
    input: (bytes: Uint8Array, by: string) => {
      if (state.answer === "taken" && bytes.byteLength > 0) state.typed.push(`${by}: ${Buffer.from(bytes)}`);
      return state.answer;
    },
    joined: (user: string, hasJoined: boolean) =>
      void state.heard.push(`${user} ${hasJoined ? "joined" : "left"}`),
  };
  sessions.add(session);
  const joins = new SessionJoins(() => [sessions]);
  const type = (text: string, user = "ben", isLeaving = false) =>
    joins.type({
      id,
      joiner: `join of ${user}`,
      user,
      data: Buffer.from(text).toString("base64"),
      isLeaving,
    });
  const end = (status = ""): void => {
    state.isOver = true;
    for (const observer of observers) {
      if (status !== "") observer.onStatus?.(Buffer.from(status));
      void observer.onEnd?.(status === "" ? REPORT : { ...REPORT, cause: "completed" });
    }
    sessions.delete(session);
  };
  return { id, joins, state, observers, type, end };
}

describe("the joiners of a process's sessions", () => {
  it("type into a session, which hears once who joins and who leaves", () => {
    const { id, joins, state, type } = running();
    expect([type(""), type("ls"), type("pwd", "cleo"), type("\n")]).toEqual(Array(4).fill("taken"));
    expect(state.typed).toEqual(["ben: ls", "cleo: pwd", "ben: \n"]);
    expect([joins.joiners, joins.usersOf(id)]).toEqual([2, ["ben", "cleo"]]);
    type("", "ben", true);
    type("", "ben", true);
    expect(state.heard).toEqual(["ben joined", "cleo joined", "ben left"]);
    expect([joins.joiners, joins.usersOf(id)]).toEqual([1, ["cleo"]]);
    expect(joins.type({ id: "x", joiner: "j", user: "ben", data: "" })).toBe("unknown");
  });

  it("are none of a session that reads no input", () => {
    const { joins, state, type } = running();
    state.answer = "no-input";
    expect(type("")).toBe("no-input");
    expect([joins.joiners, state.heard]).toEqual([0, []]);
  });

  it("have left once they are silent for too long, and then nothing is observed", () => {
    const { joins, state, observers, type } = running();
    type("");
    vi.advanceTimersByTime(MAX_JOINER_SILENCE_MS - 1_000);
    type("", "cleo");
    expect(state.heard).toEqual(["ben joined", "cleo joined"]);
    vi.advanceTimersByTime(2_000);
    expect(state.heard.at(-1)).toBe("ben left");
    expect([joins.joiners, observers.size]).toEqual([1, 1]);
    vi.advanceTimersByTime(MAX_JOINER_SILENCE_MS);
    expect([joins.joiners, observers.size, vi.getTimerCount()]).toEqual([0, 0, 0]);
  });

  it("are told the node's own Status at the end, and otherwise how the gateway ended the session", () => {
    const status = { metadata: {}, status: "Failure", message: "exit 7", reason: "NonZeroExitCode" };
    const own = running();
    own.type("");
    own.end(JSON.stringify(status));
    expect(own.type("late")).toEqual({ over: status });
    const ended = running();
    ended.type("");
    ended.end();
    expect(ended.type("")).toMatchObject({ over: { status: "Failure", code: 403, message: REPORT.message } });
    const plain = running();
    plain.type("");
    plain.end("x".repeat(MAX_JOINED_STATUS_BYTES + 1));
    expect(plain.type("")).toMatchObject({ over: { status: "Success" } });
    vi.advanceTimersByTime(2 * MAX_JOINER_SILENCE_MS);
    expect(plain.type("")).toBe("unknown");
  });

  it("come from other processes in a form that is checked", () => {
    const request = { joiner: "j", user: "ben", data: "bHM=", isLeaving: true };
    expect(readJoinRequest("id", JSON.stringify(request))).toEqual({ id: "id", ...request });
    expect(() => readJoinRequest("id", '{"joiner":"j"}')).toThrow(TypeError);
    const over = { over: { status: "Success", metadata: {} } };
    expect([readJoinAnswer("later"), readJoinAnswer(over)]).toEqual(["later", over]);
    for (const other of ["gone", undefined, {}, { over: 1 }]) expect(() => readJoinAnswer(other)).toThrow();
  });
});
