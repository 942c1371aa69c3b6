import { describe, expect, it, vi } from "vitest";
import { StatusError } from "../../../packages/client/src/api/status.ts";
import { SessionClock, type Ticking } from "../../../packages/client/src/net/session-clock.ts";
import type { Attributes, Decision } from "../../../src/access/authz/authorizer.ts";
import type { UserInfo } from "../../../src/access/user-info.ts";
import { Reauthorizer, SessionStanding } from "../../../src/sessions/reauthorizer.ts";

type Standing = Awaited<ReturnType<SessionStanding["check"]>>;

// The bound under test.
const MAX_REAUTHORIZATIONS_AT_ONCE = 16;

const SETTINGS = { reauthorizeIntervalMs: 30_000, credentialExpiry: "end" } as const;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Bench {
  nowMs = 0;
  dateMs = 1_000_000;
  random = 0;
  readonly results: string[] = [];
  readonly ticking = new Set<Ticking>();
  readonly reauthorizer: Reauthorizer;

  constructor(settings: { reauthorizeIntervalMs: number; credentialExpiry: "end" | "ignore" } = SETTINGS) {
    const clock = {
      now: () => this.nowMs,
      addFollower: (each: Ticking) => void this.ticking.add(each),
      delete: (each: Ticking) => void this.ticking.delete(each),
    } as unknown as SessionClock;
    this.reauthorizer = new Reauthorizer({
      settings,
      clock,
      onResult: (result) => void this.results.push(result),
      dateMs: () => this.dateMs,
      random: () => this.random,
    });
  }

  /** A session, its checks, and its ends. */
  session(check: () => Promise<Standing> | Standing, expiresAtMs?: number) {
    const seen = { checks: 0, ends: [] as string[], standing: { expiresAtMs }, stop: () => {} };
    const standing = {
      get expiresAtMs() {
        return seen.standing.expiresAtMs;
      },
      check: async () => {
        seen.checks += 1;
        return check();
      },
    };
    const cut = (cause: string, message: string): void => void seen.ends.push(`${cause}: ${message}`);
    seen.stop = this.reauthorizer.follow({ cut }, standing);
    return seen;
  }

  async tickAt(nowMs: number): Promise<void> {
    this.nowMs = nowMs;
    this.reauthorizer.tick(nowMs);
    await turn();
  }
}

const allowed = (): Standing => ({ result: "allowed" });

describe("running sessions", () => {
  it("are checked once in each interval, from a random moment of the first on", async () => {
    const bench = new Bench();
    bench.random = 0.5;
    const session = bench.session(allowed);
    await bench.tickAt(14_999);
    expect(session.checks).toBe(0);
    await bench.tickAt(15_000);
    expect(session.checks).toBe(1);
    await bench.tickAt(44_000);
    expect(session.checks).toBe(1);
    await bench.tickAt(46_000);
    await bench.tickAt(75_000);
    expect(session.checks).toBe(3);
    expect(bench.results).toEqual(["allowed", "allowed", "allowed"]);
    session.stop();
    expect(bench.ticking.size).toBe(0);
  });

  it("end once when they are refused, and say why", async () => {
    const bench = new Bench();
    const session = bench.session(() => ({ result: "refused", message: "no" }));
    await bench.tickAt(0);
    await bench.tickAt(60_000);
    expect(session.ends).toEqual(["authorization-revoked: the session was ended: no"]);
    expect(bench.results).toEqual(["refused"]);
    expect(bench.ticking.size).toBe(0);
  });

  it("go on while no authorizer decides", async () => {
    const bench = new Bench();
    const session = bench.session(() => ({ result: "undecided" }));
    for (let nowMs = 0; nowMs <= 90_000; nowMs += 30_000) await bench.tickAt(nowMs);
    expect([session.ends, bench.results.length]).toEqual([[], 4]);
  });

  it("end when credentials expire, unless a resumption has renewed them", async () => {
    const bench = new Bench();
    const [kept, left] = [bench.session(allowed, 1_005_000), bench.session(allowed, 1_005_000)];
    kept.standing.expiresAtMs = 2_000_000;
    bench.dateMs = 1_005_000;
    await bench.tickAt(1_000);
    expect(left.ends).toEqual([
      "authorization-revoked: the session was ended: its user's credentials have expired",
    ]);
    expect(kept.ends).toEqual([]);
  });

  it("are watches, too, which say so", async () => {
    const bench = new Bench();
    const cut = vi.fn();
    bench.reauthorizer.follow({ cut }, { expiresAtMs: 1_005_000, check: async () => allowed() }, "watch");
    await bench.tickAt(1_000);
    expect(cut).not.toHaveBeenCalled();
    bench.dateMs = 1_005_000;
    await bench.tickAt(2_000);
    const message = "the watch was ended: its user's credentials have expired";
    expect(cut).toHaveBeenCalledExactlyOnceWith(
      "authorization-revoked",
      message,
      expect.objectContaining({
        code: 403,
        message,
        details: { causes: [{ reason: "sluice.dev/WatchEnded", message: "authorization-revoked" }] },
      }),
    );
    expect(bench.ticking.size).toBe(0);
  });

  it("of expired credentials go on if that is wanted, and are not checked without an interval", async () => {
    const bench = new Bench({ reauthorizeIntervalMs: 0, credentialExpiry: "ignore" });
    const session = bench.session(allowed, 1);
    await bench.tickAt(100_000);
    expect([session.ends, session.checks]).toEqual([[], 0]);
  });

  it("are checked so many at once, the longest due first", async () => {
    const bench = new Bench();
    const answers: (() => void)[] = [];
    const slow = () => new Promise<Standing>((resolve) => answers.push(() => resolve({ result: "allowed" })));
    const sessions = Array.from({ length: MAX_REAUTHORIZATIONS_AT_ONCE + 2 }, () => bench.session(slow));
    await bench.tickAt(0);
    await bench.tickAt(1_000);
    expect(answers).toHaveLength(MAX_REAUTHORIZATIONS_AT_ONCE);
    answers[0]?.();
    await turn();
    expect(answers).toHaveLength(MAX_REAUTHORIZATIONS_AT_ONCE + 1);
    expect(sessions.at(-1)?.checks).toBe(0);
    // One that ended meanwhile is not asked for, and its answer counts for nothing.
    sessions.at(-1)?.stop();
    for (const answer of answers) answer();
    await turn();
    expect(answers).toHaveLength(MAX_REAUTHORIZATIONS_AT_ONCE + 1);
  });

  it("are left alone when all deadlines expire at the end of the process", async () => {
    const bench = new Bench();
    const session = bench.session(allowed);
    await bench.tickAt(Number.POSITIVE_INFINITY);
    expect(session.checks).toBe(0);
  });
});

describe("a session's standing", () => {
  const ana: UserInfo = { name: "ana", uid: "1", groups: [], extra: {} };
  const attributes = {} as Attributes;
  const forbidden = new StatusError({ code: 403, message: "pods is forbidden" } as never);

  function standingWith(...decisions: (Decision | Error)[]) {
    const authorizer = {
      authorize: async () => {
        const decision = decisions.shift() as Decision | Error;
        if (decision instanceof Error) throw decision;
        return decision;
      },
    };
    return new SessionStanding(ana, authorizer, async (_, asked) => {
      // Tries two ways, as impersonation does.
      const first = await asked.authorize(attributes).catch(() => undefined);
      if (first?.decision === "allow") return;
      if ((await asked.authorize(attributes)).decision !== "allow") throw forbidden;
    });
  }

  const allow: Decision = { decision: "allow", reason: "" };
  const deny: Decision = { decision: "deny", reason: "" };
  const nothing: Decision = { decision: "no-opinion", reason: "" };
  const silent: Decision = { ...nothing, error: "no answer" };

  it.each([
    ["allowed", "by the first", [allow]],
    ["allowed", "by another", [nothing, allow]],
    ["allowed", "though one is silent", [silent, allow]],
    ["refused", "by both", [nothing, deny]],
    ["undecided", "if one is silent", [silent, nothing]],
    ["undecided", "if one throws", [nothing, new Error("busy")]],
  ] as const)("is %s %s", async (result, _, decisions) => {
    expect((await standingWith(...decisions).check()).result).toBe(result);
  });

  it("of an exception that no decision caused is undecided", async () => {
    const standing = new SessionStanding(ana, { authorize: async () => allow }, async (_, asked) => {
      await asked.authorize(attributes);
      throw new TypeError("a fault of ours");
    });
    expect((await standing.check()).result).toBe("undecided");
  });

  it("is the user's of the last resumption", async () => {
    let asked = "";
    const standing = new SessionStanding<UserInfo>(
      { ...ana, expiresAtMs: 1 },
      { authorize: async () => allow },
      async ({ groups }) => {
        asked = groups.join();
      },
    );
    standing.renew({ ...ana, groups: ["sre"], expiresAtMs: 2 });
    await standing.check();
    expect([asked, standing.expiresAtMs]).toEqual(["sre", 2]);
  });
});

it("does not hold up the end of the process: a watch outlives all sessions", async () => {
  const clock = new SessionClock();
  const onResult = (): void => {};
  const reauthorizer = new Reauthorizer({ settings: SETTINGS, clock, onResult });
  const standing = { expiresAtMs: undefined, check: async () => ({ result: "allowed" }) as Standing };
  const session = { tick: () => {} };
  clock.add(session);
  const stop = reauthorizer.follow({ cut: () => {} }, standing, "watch");
  let isEmpty = false;
  const emptied = clock.whenEmpty().then(() => {
    isEmpty = true;
  });
  await turn();
  expect(isEmpty).toBe(false);
  clock.delete(session);
  await emptied;
  await clock.whenEmpty();
  stop();
});
