import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WorkerSessions } from "../../../../src/app/runtime/worker-sessions.ts";
import type { ListedSession } from "../../../../src/sessions/session-info.ts";

// The bounds under test.
const KEPT_OVER_MS = 5_000;
const MAX_KEPT_OVER = 10_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const sessionOf = (id: string): ListedSession => ({ id, startedAt: new Date(), plan: {} }) as never;

function workers() {
  const logged: string[] = [];
  const sessions = new WorkerSessions<string>({
    info: ((fields: { session: { id: string } }) => void logged.push(fields.session.id)) as never,
  });
  for (const id of ["a", "b"]) sessions.began(`worker of ${id}`, sessionOf(id));
  return { sessions, logged };
}

describe("the sessions of workers", () => {
  it("are found by id while they run, and for a while behind their end, and no longer", () => {
    const { sessions } = workers();
    expect([sessions.ownerOf("a"), sessions.lastOwnerOf("a")]).toEqual(["worker of a", "worker of a"]);
    sessions.over("worker of a", "a");
    expect([sessions.ownerOf("a"), sessions.lastOwnerOf("a")]).toEqual([undefined, "worker of a"]);
    vi.advanceTimersByTime(KEPT_OVER_MS - 1);
    expect(sessions.lastOwnerOf("a")).toBe("worker of a");
    vi.advanceTimersByTime(1);
    expect(sessions.lastOwnerOf("a")).toBeUndefined();
    expect(sessions.lastOwnerOf("b")).toBe("worker of b");
  });

  it("remembers so many that are over, the newest", () => {
    const { sessions } = workers();
    for (let number = 0; number <= MAX_KEPT_OVER; number++) sessions.over("worker of a", `s${number}`);
    expect([sessions.lastOwnerOf("s0"), sessions.lastOwnerOf("s1")]).toEqual([undefined, "worker of a"]);
  });

  it("of a worker that dies are logged as ended, and lead to it no more", () => {
    const { sessions, logged } = workers();
    sessions.over("worker of a", "old");
    sessions.gone("worker of a");
    expect(logged).toEqual(["a"]);
    expect([sessions.lastOwnerOf("a"), sessions.lastOwnerOf("old")]).toEqual([undefined, undefined]);
  });
});
