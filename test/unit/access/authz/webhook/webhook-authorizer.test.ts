import { describe, expect, it, onTestFinished, vi } from "vitest";
import { WebhookAuthorizer } from "../../../../../src/access/authz/webhook/webhook-authorizer.ts";
import { changedValues } from "../../../../support/changed-values.ts";
import { asked, user } from "../../../../support/rbac-objects.ts";

// The bounds under test.
const MAX_ACCESS_REVIEWS_IN_FLIGHT = 64;
const MAX_WAITING_ACCESS_REVIEWS = 1_000;
const QUEUE_WAIT_MS = 15_000;

interface Review {
  spec: Record<string, unknown>;
}

/** A webhook whose answers and clock the test holds. */
function start(options: { maxCachedDecisions?: number; version?: "v1beta1" } = {}) {
  const reviews: Review[] = [];
  const failures: string[] = [];
  const state = {
    nowMs: 0,
    answer: async (_: Review): Promise<{ status: number; body: unknown }> => allowed(true),
  };
  const authorizer = new WebhookAuthorizer(
    async (review) => {
      reviews.push(review as Review);
      return state.answer(review as Review);
    },
    {
      version: options.version ?? "v1",
      authorizedTtlMs: 300_000,
      unauthorizedTtlMs: 30_000,
      maxCachedDecisions: options.maxCachedDecisions ?? 100,
      nowMs: () => state.nowMs,
      onFailure: ({ message }) => failures.push(message),
    },
  );
  return { reviews, failures, state, authorizer };
}

const allowed = (isAllowed: boolean, more: object = {}, status = 201) => ({
  status,
  body: { status: { allowed: isAllowed, ...more } },
});
const alice = asked({
  user: { name: "alice", uid: "u1", groups: ["dev"], extra: { scope: ["a", "b"] } },
  verb: "create",
  namespace: "ns",
  subresource: "exec",
  name: "web",
});

describe("the authorization webhook", () => {
  it("is sent groups as `group` in v1beta1", async () => {
    const { authorizer, reviews } = start({ version: "v1beta1" });
    await authorizer.authorize(alice);
    expect(reviews).toMatchObject([{ apiVersion: "authorization.k8s.io/v1beta1", spec: { group: ["dev"] } }]);
    expect(reviews[0]?.spec).not.toHaveProperty("groups");
  });

  it("is sent a SubjectAccessReview as kube-apiserver sends it", async () => {
    const { authorizer, reviews } = start();
    await authorizer.authorize(alice);
    await authorizer.authorize(asked({ isResourceRequest: false, verb: "get", path: "/x" }));
    expect(reviews).toEqual([
      {
        kind: "SubjectAccessReview",
        apiVersion: "authorization.k8s.io/v1",
        spec: {
          user: "alice",
          uid: "u1",
          groups: ["dev"],
          extra: { scope: ["a", "b"] },
          resourceAttributes: {
            namespace: "ns",
            verb: "create",
            version: "v1",
            resource: "pods",
            subresource: "exec",
            name: "web",
          },
        },
      },
      {
        kind: "SubjectAccessReview",
        apiVersion: "authorization.k8s.io/v1",
        spec: { user: "nobody", nonResourceAttributes: { path: "/x", verb: "get" } },
      },
    ]);
  });

  it.each([
    [allowed(true, { reason: "because" }), { decision: "allow", reason: "because" }],
    [allowed(false, { reason: "not yet" }), { decision: "no-opinion", reason: "not yet" }],
    [allowed(false, { denied: true, reason: "never" }), { decision: "deny", reason: "never" }],
    [allowed(true, { denied: false }, 200), { decision: "allow", reason: "" }],
  ])("answer %j", async (answer, decision) => {
    const { authorizer, state } = start();
    state.answer = async () => answer;
    expect(await authorizer.authorize(alice)).toEqual(decision);
  });

  it.each([
    ["both", allowed(true, { denied: true }), /both allow and deny/],
    ["a string", { status: 201, body: { status: { allowed: "true" } } }, /no status.allowed/],
    ["no JSON", { status: 200, body: undefined }, /no status.allowed/],
    ["null", { status: 200, body: null }, /no status.allowed/],
    ["403 that allows", allowed(true, {}, 403), /answered with 403/],
    ["500", { status: 500, body: undefined }, /answered with 500/],
    ["a redirect", { status: 302, body: undefined }, /answered with 302/],
  ])("what cannot be believed allows nobody and is not kept: %s", async (_, answer, failure) => {
    const { authorizer, state, failures, reviews } = start();
    state.answer = async () => answer;
    const reason = "the authorization webhook gave no answer";
    expect(await authorizer.authorize(alice)).toEqual({ decision: "no-opinion", reason, error: reason });
    expect(failures).toEqual([expect.stringMatching(failure)]);
    state.answer = async () => allowed(true);
    expect((await authorizer.authorize(alice)).decision).toBe("allow");
    expect(reviews).toHaveLength(2);
  });

  it("keeps allowed 5 m and not allowed 30 s, by a clock", async () => {
    const { authorizer, state, reviews } = start();
    const bob = { ...alice, user: user("bob") };
    state.answer = async ({ spec }) => allowed(spec.user === "alice");
    const ask = async () => {
      const before = reviews.length;
      await authorizer.authorize(alice);
      const alices = reviews.length - before;
      await authorizer.authorize(bob);
      return [alices, reviews.length - before - alices];
    };
    expect(await ask()).toEqual([1, 1]);
    state.nowMs = 29_999;
    expect(await ask()).toEqual([0, 0]);
    state.nowMs = 30_000;
    expect(await ask()).toEqual([0, 1]);
    state.nowMs = 299_999;
    expect(await ask()).toEqual([0, 1]);
    state.nowMs = 300_000;
    expect(await ask()).toEqual([1, 0]);
  });

  it("a storm of equal questions is one review; another user's is another", async () => {
    const { authorizer, state, reviews } = start();
    const gate: { open: () => void } = { open: () => {} };
    const isOpen = new Promise<void>((resolve) => {
      gate.open = resolve;
    });
    state.answer = async ({ spec }) => {
      await isOpen;
      return allowed(spec.user === "alice");
    };
    const storm = Array.from({ length: 1_000 }, (_, index) =>
      authorizer.authorize(index % 2 === 0 ? { ...alice } : { ...alice, user: user("bob") }),
    );
    expect(authorizer.reviewsInFlight).toBe(2);
    gate.open();
    const decisions = await Promise.all(storm);
    expect(reviews).toHaveLength(2);
    expect(decisions.filter(({ decision }) => decision === "allow")).toHaveLength(500);
    expect(authorizer.reviewsInFlight).toBe(0);
  });

  it("a storm on a webhook that is down fails once, for all, and closed", async () => {
    const { authorizer, state, reviews, failures } = start();
    state.answer = async () => {
      throw new Error("connect ECONNREFUSED");
    };
    const decisions = await Promise.all(Array.from({ length: 100 }, () => authorizer.authorize(alice)));
    expect(new Set(decisions.map(({ decision }) => decision))).toEqual(new Set(["no-opinion"]));
    expect([reviews.length, failures]).toEqual([1, ["connect ECONNREFUSED"]]);
  });

  it("the cache is bounded; the least recently used answer goes", async () => {
    const { authorizer, reviews } = start({ maxCachedDecisions: 2 });
    const as = (name: string) => authorizer.authorize({ ...alice, user: user(name) });
    for (const name of ["a", "b", "a", "c", "a", "b"]) await as(name);
    expect(reviews.map(({ spec }) => spec.user)).toEqual(["a", "b", "c", "b"]);
  });

  it("a user who asks about everything evicts nobody else's decision", async () => {
    const { authorizer, reviews } = start({ maxCachedDecisions: 8 });
    const as = (name: string, pod: string) => authorizer.authorize({ ...alice, user: user(name), name: pod });
    for (const name of ["a", "b", "c", "d", "e"]) await as(name, "web");
    for (let number = 0; number < 100; number += 1) await as("mallory", `pod-${number}`);
    const before = reviews.length;
    for (const name of ["a", "b", "c", "d", "e"]) await as(name, "web");
    expect(reviews).toHaveLength(before);
    await as("mallory", "pod-0");
    expect(reviews).toHaveLength(before + 1);
  });

  it("overlong attributes are asked about every time", async () => {
    const { authorizer, reviews } = start();
    const long = { ...alice, name: "x".repeat(10_000) };
    await authorizer.authorize(long);
    await authorizer.authorize(long);
    expect(reviews).toHaveLength(2);
  });

  it("a user's differences are all part of the question", async () => {
    const { authorizer, reviews } = start();
    for (const difference of [{ uid: "u2" }, { groups: ["ops"] }, { extra: {} }, { name: "alicia" }]) {
      await authorizer.authorize(alice);
      await authorizer.authorize({ ...alice, user: { ...alice.user, ...difference } });
    }
    expect(reviews).toHaveLength(5);
  });

  it("cannot list rules, and says so", async () => {
    expect(await start().authorizer.rulesFor()).toMatchObject({ incomplete: true });
  });
});

describe("many questions at once", () => {
  it("are reviewed so many at a time; a user with one question waits for none of another's", async () => {
    const { authorizer, reviews, state } = start();
    const answers: (() => void)[] = [];
    state.answer = () => new Promise((resolve) => answers.push(() => resolve(allowed(true))));
    const most = MAX_ACCESS_REVIEWS_IN_FLIGHT + MAX_WAITING_ACCESS_REVIEWS;
    const mallory = { ...alice, user: user("mallory") };
    const hostile = Array.from({ length: most + 100 }, (_, index) =>
      authorizer.authorize({ ...mallory, name: `pod-${index}` }).catch((error: unknown) => error),
    );
    expect(reviews).toHaveLength(MAX_ACCESS_REVIEWS_IN_FLIGHT);
    const honest = authorizer.authorize(alice);
    answers[0]?.();
    await expect.poll(() => reviews.length, { interval: 1 }).toBe(MAX_ACCESS_REVIEWS_IN_FLIGHT + 1);
    expect(reviews.at(-1)?.spec).toMatchObject({ user: "alice" });
    for (let answered = 1; answered < most; answered++) {
      await expect.poll(() => answers.length, { interval: 1 }).toBeGreaterThan(answered);
      answers[answered]?.();
    }
    expect(await honest).toMatchObject({ decision: "allow" });
    const refused = (await Promise.all(hostile)).filter((end) => end instanceof Error);
    expect(refused).toHaveLength(101);
    expect(refused[0]).toMatchObject({ code: 429 });
  });
});

it("a question waits so long for its turn, then its request is told to come again; never allowed", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { authorizer, reviews, state } = start();
  state.answer = () => new Promise(() => {});
  const ask = (index: number) =>
    authorizer
      .authorize({ ...alice, name: `pod-${index}` })
      .catch(({ code, status }) => [code, status.details]);
  for (let index = 0; index < MAX_ACCESS_REVIEWS_IN_FLIGHT; index++) void ask(index);
  const ends = Array.from({ length: MAX_WAITING_ACCESS_REVIEWS }, (_, index) => ask(1_000 + index));
  await vi.advanceTimersByTimeAsync(QUEUE_WAIT_MS);
  expect(new Set((await Promise.all(ends)).map((end) => JSON.stringify(end)))).toEqual(
    new Set([JSON.stringify([429, { retryAfterSeconds: 1 }])]),
  );
  expect([reviews.length, authorizer.reviewsInFlight]).toEqual([
    MAX_ACCESS_REVIEWS_IN_FLIGHT,
    MAX_ACCESS_REVIEWS_IN_FLIGHT,
  ]);
});

it("allows by no answer but one that says so", async () => {
  const answer = { kind: "SubjectAccessReview", status: { allowed: false, denied: false, reason: "r" } };
  for (const body of [
    ...changedValues(answer),
    ...changedValues({ status: { allowed: true, reason: "r" } }),
  ]) {
    const { authorizer, state } = start();
    state.answer = async () => ({ status: 201, body });
    const { decision } = await authorizer.authorize(alice);
    const {
      allowed: isAllowed,
      denied,
      reason = "",
    } = (body as { status?: { allowed?: unknown; denied?: unknown; reason?: unknown } } | null)?.status ?? {};
    expect([JSON.stringify(body), decision === "allow"]).toEqual([
      JSON.stringify(body),
      isAllowed === true && denied !== true && typeof (reason ?? "") === "string",
    ]);
  }
});
