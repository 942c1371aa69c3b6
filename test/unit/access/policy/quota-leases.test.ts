import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SharedQuotas } from "../../../../src/access/policy/component.ts";
import { QuotaLeases } from "../../../../src/access/policy/quota-leases.ts";

// The bound under test.
const MAX_CHANGES_OF_CALL = 100;

interface Call {
  readonly members: readonly string[];
  resolve(answers: unknown): void;
  reject(error: Error): void;
}

/** A quota store whose answers are the test's. */
class ScriptedStore {
  readonly calls: Call[] = [];
  connects = 0;
  closes = 0;
  isRefusing = false;
  onClosed = (): void => {};
  /** Undefined: calls wait. */
  answer: ((count: number) => unknown) | undefined = (count) => Array.from({ length: count }, () => 0);

  readonly connect = async (onClosed: () => void) => {
    this.connects += 1;
    if (this.isRefusing) throw new Error("connect ECONNREFUSED");
    this.onClosed = onClosed;
    return {
      run: (_keys: readonly string[], values: readonly string[]) => {
        const changes = values.slice(3);
        const members = changes.flatMap((value, index) =>
          index % 2 === 0 ? [`${value} ${changes[index + 1]}`] : [],
        );
        return new Promise<unknown>((resolve, reject) => {
          this.calls.push({ members, resolve, reject });
          if (this.answer !== undefined) resolve(this.answer(members.length));
        });
      },
      close: () => {
        this.closes += 1;
      },
    };
  };

  /** Of all calls: such as `take`, without the members. */
  get actions(): readonly string[] {
    return this.calls.flatMap(({ members }) => members.map((member) => member.split(" ")[0] ?? ""));
  }
}

let store: ScriptedStore;
let changes: (string | undefined)[];
let leases: QuotaLeases;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  store = new ScriptedStore();
  changes = [];
  leases = new QuotaLeases({
    connect: store.connect,
    keyPrefix: "test",
    leaseMs: 3_000,
    bounds: () => ({ maxSessionsPerUser: 5 }),
    onChange: (problem) => changes.push(problem),
  });
});
afterEach(() => {
  leases.stop();
  vi.useRealTimers();
});

const limits = { maxSessionsPerUser: 2, maxSessionsPerNamespace: undefined };
function shared(onFailure: "allow" | "deny"): { quotas: SharedQuotas; decisions: string[] } {
  const decisions: string[] = [];
  const onDecision = (decision: string): void => void decisions.push(decision);
  return { quotas: new SharedQuotas(limits, leases, { onFailure, onDecision }), decisions };
}

describe("leases in the quota store", () => {
  it("go together with the next call while one is under way, a bounded number in each", async () => {
    await leases.connect();
    store.calls.length = 0;
    store.answer = undefined;
    const taken = Array.from({ length: 2 * MAX_CHANGES_OF_CALL }, () =>
      leases.take(leases.newLease("ann", "a")),
    );
    const sizes: number[] = [];
    for (const size of [1, MAX_CHANGES_OF_CALL, MAX_CHANGES_OF_CALL - 1]) {
      await vi.waitFor(() => expect(store.calls).toHaveLength(sizes.length + 1));
      const call = store.calls.at(-1) as Call;
      sizes.push(call.members.length);
      call.resolve(Array.from({ length: size }, () => 0));
    }
    expect(sizes).toEqual([1, MAX_CHANGES_OF_CALL, MAX_CHANGES_OF_CALL - 1]);
    expect(new Set(await Promise.all(taken))).toEqual(new Set(["granted"]));
  });

  it("are renewed three times in each lease time until they are released, and with none the store is still asked", async () => {
    await leases.connect();
    const lease = leases.newLease("ann", "a");
    await leases.take(lease);
    leases.hold(lease);
    store.calls.length = 0;
    await vi.advanceTimersByTimeAsync(3_000);
    expect(store.actions).toEqual(["keep", "keep", "keep"]);
    leases.release(lease);
    leases.release(lease);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(store.actions.slice(3)).toEqual(["drop"]);
    const { length } = store.calls;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(store.calls).toHaveLength(length + 1);
  });

  it("wait for nothing while the store is away: takes fail at once, drops are forgotten, and held ones come first afterwards", async () => {
    await leases.connect();
    const [held, given] = [leases.newLease("ann", "a"), leases.newLease("bob", "a")];
    for (const lease of [held, given]) {
      await leases.take(lease);
      leases.hold(lease);
    }
    store.isRefusing = true;
    store.onClosed();
    expect(changes).toEqual(["the connection was closed"]);
    await expect(leases.take(leases.newLease("eve", "a"))).rejects.toThrow("the connection was closed");
    leases.release(given);
    expect(leases.waiting).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    // Doubling from 100 ms to 5 s, each between a half and one and a half of it.
    expect(store.connects).toBeGreaterThan(10);
    expect(store.connects).toBeLessThan(40);
    expect(changes).toHaveLength(1);
    store.isRefusing = false;
    store.calls.length = 0;
    await vi.advanceTimersByTimeAsync(7_500);
    expect(changes).toEqual(["the connection was closed", undefined]);
    expect(store.calls[0]?.members).toEqual([`keep ${held.member}`]);
  });

  it("count the store as away when it fails, is too slow, or answers nonsense; what waits is told at once", async () => {
    for (const fail of [
      (call: Call) => call.reject(new Error("Command timed out")),
      (call: Call) => call.reject(new Error("LOADING Redis is loading the dataset in memory")),
      (call: Call) => call.resolve("OK"),
      (call: Call) => call.resolve([7]),
    ]) {
      await leases.connect();
      const { closes } = store;
      store.answer = undefined;
      const taken = [1, 2].map(() =>
        leases.take(leases.newLease("ann", "a")).catch((error: Error) => error.name),
      );
      fail(store.calls.at(-1) as Call);
      expect(await Promise.all(taken)).toEqual(["Error", "Error"]);
      expect(leases.problem).toBeDefined();
      expect(store.closes).toBe(closes + 1);
      store.answer = (count) => Array.from({ length: count }, () => 0);
    }
    expect(changes.filter((problem) => problem !== undefined)).toHaveLength(4);
  });

  it("quote no arguments of an unknown command", async () => {
    store.answer = () =>
      Promise.reject(new Error("ERR unknown command 'EVALSHA', with args beginning with: 'ann'"));
    await leases.connect();
    expect(leases.problem).toBe("ERR unknown command 'EVALSHA'");
  });
});

describe("quotas of all replicas", () => {
  it("refuse as the store says, in the words of one replica's", async () => {
    await leases.connect();
    const { quotas, decisions } = shared("deny");
    store.answer = () => [1];
    await expect(quotas.take("ann", "a")).rejects.toMatchObject({
      code: 429,
      message: 'user "ann" has 2 streaming sessions already, which is the limit',
    });
    expect(decisions).toEqual(["refused"]);
  });

  it("count the own sessions while the store is away, if that allows; those count for all once it is back", async () => {
    const { quotas, decisions } = shared("allow");
    store.isRefusing = true;
    await leases.connect();
    const [first] = [await quotas.take("ann", "a"), await quotas.take("ann", "b")];
    await expect(quotas.take("ann", "a")).rejects.toMatchObject({ code: 429 });
    first();
    first();
    store.isRefusing = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(new Set(store.calls.flatMap(({ members }) => members)).size).toBe(1);
    expect(decisions).toEqual(["allowed", "allowed"]);
  });

  it("refuse with 503 while the store is away, if that denies", async () => {
    const { quotas, decisions } = shared("deny");
    store.isRefusing = true;
    await leases.connect();
    await expect(quotas.take("ann", "a")).rejects.toMatchObject({ code: 503 });
    expect(decisions).toEqual(["denied"]);
  });

  it("ask nothing of the store without a bound, and count those sessions once there is one", async () => {
    await leases.connect();
    store.calls.length = 0;
    const { quotas } = shared("deny");
    quotas.replaceLimits({ maxSessionsPerUser: undefined, maxSessionsPerNamespace: undefined });
    await quotas.take("ann", "a");
    expect(store.calls).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(store.actions).toEqual(["keep"]);
  });
});
