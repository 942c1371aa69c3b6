import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { onFault } from "../../../packages/client/src/observability/faults.ts";
import { endOf, type SessionEnd } from "../../../packages/client/src/sessions/session-end.ts";
import type { SessionLifecycle } from "../../../src/sessions/lifecycle.ts";
import type { ObservedSession, SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import type { StreamingSession } from "../../../src/sessions/session.ts";
import { Sessions } from "../../../src/sessions/sessions.ts";
import { CarriedSession, type MemorySocket } from "../../support/carried-session.ts";

// The bound under test.
const MAX_END_WAIT_MS = 5_000;

const DONE = endOf("completed", "exit code 0");

/** A session that carries nothing: what is left is its life. */
class IdleSession implements StreamingSession {
  readonly life: SessionLifecycle;
  readonly warnings: string[] = [];
  readonly socket: MemorySocket;

  constructor(carried: CarriedSession) {
    this.life = carried.life;
    this.socket = carried.client;
    this.socket.on("error", () => {});
    carried.carry(() => this);
  }

  tick(): void {}

  warn(message: string): void {
    this.warnings.push(message);
  }

  end(end: SessionEnd): void {
    this.life.end(end, this.socket);
  }
}

describe("the life of a session", () => {
  it("ends as a shutdown if the process stops before its drain has reached it", () => {
    const carried = new CarriedSession();
    const session = new IdleSession(carried);
    const ends: SessionEnd[] = [];
    const end = session.end.bind(session);
    session.end = (one) => {
      ends.push(one);
      end(one);
    };
    session.life.tick(Number.POSITIVE_INFINITY);
    expect(ends).toEqual([endOf("shutdown", "the gateway is shutting down")]);
    expect(carried.causes).toEqual(["shutdown"]);
  });

  it("tells its observers and its terminal who joined and who left", () => {
    const heard: string[] = [];
    const observer = {
      isRequired: true,
      onJoin: (user: string, hasJoined: boolean) => void heard.push(`${user} ${hasJoined}`),
    };
    const session = new IdleSession(new CarriedSession({}, [observer]));
    session.life.joined("ben", true);
    session.life.joined("b\u001b[2Je\nn", false);
    expect(heard).toEqual(["ben true", "b\u001b[2Je\nn false"]);
    expect(session.warnings).toEqual([
      "ben has joined this session and can type",
      "b\ufffd[2Je n has left this session",
    ]);
    session.life.end(DONE, undefined);
    session.life.joined("cleo", true);
    expect(session.warnings).toHaveLength(2);
  });

  it("takes a joiner's input only for a command with stdin, and contains what its carrier throws", () => {
    const carried = new CarriedSession();
    let info: unknown = { details: { stdin: false } };
    Object.defineProperty(carried.life, "info", { get: () => info });
    expect(carried.life.input(Buffer.from("x"), "ben")).toBe("no-input");
    info = { details: { stdin: true } };
    expect(carried.life.input(Buffer.from("x"), "ben")).toBe("later");
    const session: StreamingSession = new IdleSession(carried);
    expect(carried.life.input(Buffer.from("x"), "ben")).toBe("no-input");
    session.input = () => "taken";
    expect(carried.life.input(Buffer.from("x"), "ben")).toBe("taken");
    const faults: string[] = [];
    const off = onFault((scope) => void faults.push(scope));
    session.input = () => {
      throw new Error("broken");
    };
    expect(carried.life.input(Buffer.from("x"), "ben")).toBe("no-input");
    off();
    expect(faults).toEqual(["session"]);
    expect(carried.causes).toEqual(["internal-error"]);
  });

  it("ends when nothing moved for the idle time, with one warning before", () => {
    const carried = new CarriedSession({ idleMs: 600_000 });
    const session = new IdleSession(carried);
    carried.clock.advance(539_999);
    expect(session.warnings).toEqual([]);
    carried.clock.advance(1);
    carried.clock.advance(1_000);
    expect(session.warnings).toEqual(["this session is idle and will be ended in 60 s"]);
    carried.clock.advance(59_000);
    expect(carried.reports).toMatchObject([{ cause: "idle", endedBy: "gateway", code: 500 }]);
  });

  it("goes on as long as bytes move, up to its total duration", () => {
    const carried = new CarriedSession({ idleMs: 10_000, maxDurationMs: 30_000 });
    const session = new IdleSession(carried);
    for (let seconds = 9; seconds <= 27; seconds += 9) {
      session.life.downstreamBytes += 1;
      carried.clock.advance(9_000);
    }
    expect(session.life.isOver).toBe(false);
    carried.clock.advance(3_000);
    expect(carried.reports).toMatchObject([{ cause: "time-limit", downstreamBytes: 3, upstreamBytes: 0 }]);
  });

  it("ends once: what comes later is not reported, and the clock lets go of it", () => {
    const carried = new CarriedSession();
    const session = new IdleSession(carried);
    expect(carried.clock.listenerCount).toBe(1);
    session.life.end(endOf("client-gone", "it closed"), session.socket);
    session.life.end(endOf("upstream-lost", "it broke"), session.socket);
    session.end(endOf("shutdown", "bye"));
    expect(carried.clock.listenerCount).toBe(0);
    expect(carried.overs).toBe(1);
    expect(carried.reports.map(({ cause, message }) => [cause, message])).toEqual([
      ["client-gone", "it closed"],
    ]);
  });

  it("is over at once, and reported as completed when its client has ended behind all of it", async () => {
    const carried = new CarriedSession();
    const session = new IdleSession(carried);
    session.socket.resume();
    session.life.end(DONE, session.socket);
    expect([carried.overs, carried.reports.length]).toEqual([1, 0]);
    session.socket.push(null);
    await expect.poll(() => carried.reports.map(({ cause }) => cause)).toEqual(["completed"]);
  });

  it("is its client's end where that broke before it had all", async () => {
    const carried = new CarriedSession();
    const session = new IdleSession(carried);
    session.life.end(DONE, session.socket);
    session.socket.destroy(new Error("reset"));
    await turn();
    expect(carried.reports).toMatchObject([
      {
        cause: "client-gone",
        endedBy: "client",
        message: "exit code 0, and the client was gone before it had all of it",
      },
    ]);
  });

  it("is completed at once where the client is known to have all", () => {
    const carried = new CarriedSession();
    const session = new IdleSession(carried);
    session.life.end(DONE, undefined);
    expect(carried.reports.map(({ cause }) => cause)).toEqual(["completed"]);
  });
});

describe("an observer of a session", () => {
  it("knows the session before it begins, may end it, and has the report last", () => {
    const events: string[] = [];
    let observed: ObservedSession | undefined;
    const observer: SessionObserver = {
      isRequired: false,
      onBegin: (session) => {
        observed = session;
        events.push("begins");
      },
      onEnd: ({ cause, endedBy }) => void events.push(`${cause} by ${endedBy}`),
    };
    const carried = new CarriedSession({}, [observer]);
    new IdleSession(carried);
    expect(observed?.info).toBe(carried.life.info);
    observed?.cut("recording-failed", "no disk");
    expect(events).toEqual(["begins", "recording-failed by gateway"]);
    expect(carried.reports).toMatchObject([{ cause: "recording-failed", message: "no disk" }]);
  });

  it("may end it before it carries anything, with its own Status", () => {
    const status = { status: "Failure", reason: "Forbidden", message: "not now", code: 403 };
    const observer: SessionObserver = {
      isRequired: false,
      onBegin: (session) => session.cut("moderator", "ended by cleo", status),
    };
    const carried = new CarriedSession({}, [observer]);
    const ends: SessionEnd[] = [];
    carried.carry(() => ({ tick: () => {}, end: (end) => ends.push(end) }));
    expect(ends).toEqual([
      { endedBy: "gateway", cause: "moderator", code: 403, message: "ended by cleo", status },
    ]);
  });

  it("may delay the report of the end, and a shutdown, by a bound", async () => {
    let written = (): void => {};
    const waiting: SessionObserver = {
      isRequired: false,
      onEnd: () => new Promise((resolve) => (written = resolve)),
    };
    const carried = new CarriedSession({}, [waiting]);
    const session = new IdleSession(carried);
    session.end(endOf("shutdown", "bye"));
    await turn();
    expect([carried.overs, carried.causes, carried.clock.listenerCount]).toEqual([1, [], 1]);
    written();
    await turn();
    expect([carried.causes, carried.clock.listenerCount]).toEqual([["shutdown"], 0]);

    const late = new CarriedSession({}, [{ isRequired: false, onEnd: () => new Promise(() => {}) }]);
    new IdleSession(late).end(endOf("shutdown", "bye"));
    late.clock.advance(MAX_END_WAIT_MS - 1);
    expect(late.causes).toEqual([]);
    late.clock.advance(1);
    expect([late.causes, late.clock.listenerCount]).toEqual([["shutdown"], 0]);
  });

  it("that fails to write its end is counted, and the end is reported", async () => {
    const faults: string[] = [];
    const stop = onFault((where, error) => void faults.push(`${where}: ${(error as Error).message}`));
    const failing: SessionObserver = {
      isRequired: false,
      onEnd: () => Promise.reject(new Error("no disk")),
    };
    const carried = new CarriedSession({}, [failing]);
    new IdleSession(carried).end(endOf("shutdown", "bye"));
    await turn();
    stop();
    expect([faults, carried.causes]).toEqual([["observer: no disk"], ["shutdown"]]);
  });

  it("that is required and cannot begin keeps the session from beginning", async () => {
    const observer: SessionObserver = {
      isRequired: true,
      onBegin: () => {
        throw new Error("no disk");
      },
    };
    const stop = onFault(() => {});
    const carried = new CarriedSession({}, [observer]);
    carried.client.on("error", () => {});
    carried.life.carry([carried.client, carried.node], () => expect.unreachable());
    await turn();
    stop();
    expect(carried.causes).toEqual(["internal-error"]);
    expect([carried.client.destroyed, carried.node.destroyed]).toEqual([true, true]);
  });
});

describe("what a session throws", () => {
  const failing = (session: IdleSession): IdleSession =>
    Object.assign(session, {
      end: () => {
        throw new Error("its state is broken");
      },
    });
  let faults: string[];
  let stop: () => void;
  beforeEach(() => {
    faults = [];
    stop = onFault((where, error) => void faults.push(`${where}: ${(error as Error).message}`));
  });
  afterEach(() => stop());

  it("in a callback of a socket ends it by its own end", () => {
    const carried = new CarriedSession();
    const session = new IdleSession(carried);
    session.socket.on("data", () => {
      throw new Error("thrown");
    });
    session.socket.emit("data", Buffer.from("x"));
    expect(faults).toEqual(["session: thrown"]);
    expect(carried.causes).toEqual(["internal-error"]);
    expect(session.socket.destroyed).toBe(false);
  });

  it("in a tick, with an end that throws as well, breaks both connections and is reported once", async () => {
    const carried = new CarriedSession();
    const session = failing(new IdleSession(carried));
    session.tick = () => {
      throw new Error("thrown");
    };
    carried.clock.advance(1);
    carried.clock.advance(1);
    await turn();
    expect(faults).toEqual(["session: thrown", "session: its state is broken"]);
    expect(carried.causes).toEqual(["internal-error"]);
    expect([
      carried.overs,
      carried.clock.listenerCount,
      carried.client.destroyed,
      carried.node.destroyed,
    ]).toEqual([1, 0, true, true]);
  });

  it("while its client takes the result leaves it one outcome", async () => {
    const carried = new CarriedSession();
    const session = failing(new IdleSession(carried));
    session.life.end(DONE, session.socket);
    session.socket.on("data", () => {
      throw new Error("thrown");
    });
    session.socket.emit("data", Buffer.from("x"));
    await turn();
    expect(carried.causes).toEqual(["internal-error"]);
  });

  it("in its beginning breaks both connections, and it is listed no more", async () => {
    const carried = new CarriedSession();
    carried.client.on("error", () => {});
    carried.life.carry([carried.client, carried.node], () => {
      throw new Error("thrown");
    });
    await turn();
    expect(carried.causes).toEqual(["internal-error"]);
    expect([carried.client.destroyed, carried.node.destroyed]).toEqual([true, true]);
  });

  it("at a shutdown keeps no other session from ending", async () => {
    const [broken, well] = [new CarriedSession(), new CarriedSession()];
    failing(new IdleSession(broken));
    new IdleSession(well);
    const sessions = new Sessions(2);
    sessions.add(broken.life);
    sessions.add(well.life);
    await sessions.endAll("bye");
    expect([broken.causes, well.causes]).toEqual([["internal-error"], ["shutdown"]]);
  });
});
