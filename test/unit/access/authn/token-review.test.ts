import { describe, expect, it, onTestFinished, vi } from "vitest";
import { TokenReviews } from "../../../../src/access/authn/token-review.ts";
import { changedValues } from "../../../support/changed-values.ts";

type TokenReviewOptions = ConstructorParameters<typeof TokenReviews>[1];

// The bounds under test.
const MAX_REVIEWS_IN_FLIGHT = 32;
const MAX_WAITING_REVIEWS = 1_000;
const QUEUE_WAIT_MS = 15_000;
const TOKEN_LEEWAY_MS = 60_000;

const TOKEN = "review-me-secret";
const KNOWN = {
  status: 201,
  body: {
    status: {
      authenticated: true,
      audiences: ["sluice"],
      user: { username: "sa", uid: "1", groups: ["g"], extra: { scopes: ["a"] } },
    },
  },
};
const UNKNOWN = { status: 201, body: { status: { authenticated: false, error: "no" } } };

function reviews(
  answer: () => Promise<{ status: number; body: unknown }>,
  changes: Partial<TokenReviewOptions> = {},
) {
  const asked: unknown[] = [];
  const failures: string[] = [];
  const clock = { nowMs: 0 };
  const tokens = new TokenReviews(
    (review) => {
      asked.push(review);
      return answer();
    },
    {
      version: "v1",
      audiences: ["sluice"],
      cacheTtlMs: 100,
      failureCacheTtlMs: 10,
      maxCachedTokens: 2,
      nowMs: () => clock.nowMs,
      epochMs: () => 1_700_000_000_000 + clock.nowMs,
      onFailure: ({ message }) => failures.push(message),
      ...changes,
    },
  );
  return { tokens, asked, failures, clock };
}

describe("a JWT that expires while its review is cached", () => {
  const jwt = (claims: object): string =>
    `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
  const EXPIRING = { exp: 1_700_000_000.05 };

  it.each<[string, string, number]>([
    ["is reviewed again from then on", jwt(EXPIRING), 2],
    ["and is past its time is cached as briefly as an unknown one", jwt({ exp: 1_699_999_990 }), 3],
    ["later than the cache's time is cached for that", jwt({ exp: 1_700_000_900 }), 1],
    ["never is cached for that", jwt({ sub: "a" }), 1],
    ["in no readable time is cached for that", jwt({ exp: "soon" }), 1],
    ["and is none is cached for that", "a.b.c", 1],
  ])("%s", async (_, token, times) => {
    const { tokens, asked, clock } = reviews(async () => KNOWN);
    for (const nowMs of [0, 9, 49, 59]) {
      clock.nowMs = nowMs;
      expect(await tokens.attemptToken(token)).toMatchObject({ type: "known" });
    }
    expect(asked).toHaveLength(times);
  });
});

it.each<[string, string, number | undefined]>([
  ["ends so long after its exp as Kubernetes takes it", "exp", 1_700_000_060],
  ["has none without the claim", "sub", 5],
  ["has none that is not a time", "exp", 1e300],
])("a reviewed JWT %s", async (_, claim, value) => {
  const { tokens } = reviews(async () => KNOWN);
  const token = `e30.${Buffer.from(JSON.stringify({ [claim]: value })).toString("base64url")}.c2ln`;
  const expiresAtMs = value === 1_700_000_060 ? 1_700_000_060_000 + TOKEN_LEEWAY_MS : undefined;
  for (const from of ["review", "cache"]) {
    const attempt = await tokens.attemptToken(token);
    expect([from, attempt.type === "known" && attempt.user.expiresAtMs]).toEqual([from, expiresAtMs]);
  }
});

describe("a TokenReview", () => {
  it("tells the user, and asks as Kubernetes has it", async () => {
    const { tokens, asked } = reviews(async () => KNOWN);
    expect(await tokens.attemptToken(TOKEN)).toEqual({
      type: "known",
      user: { name: "sa", uid: "1", groups: ["g"], extra: { scopes: ["a"] } },
    });
    expect(asked).toEqual([
      {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenReview",
        spec: { token: TOKEN, audiences: ["sluice"] },
      },
    ]);
  });

  it("is asked in v1beta1 where that is said", async () => {
    const { tokens, asked } = reviews(async () => KNOWN, { version: "v1beta1" });
    await tokens.attemptToken(TOKEN);
    expect(asked).toMatchObject([{ apiVersion: "authentication.k8s.io/v1beta1" }]);
  });

  it("is asked once for any number of requests at a time", async () => {
    const { tokens, asked } = reviews(async () => KNOWN);
    await Promise.all(Array.from({ length: 50 }, () => tokens.attemptToken(TOKEN)));
    expect(asked).toHaveLength(1);
  });

  it.each([
    ["a known token", KNOWN, 100],
    ["an unknown token", UNKNOWN, 10],
  ])("is remembered for its time: %s", async (_, answer, ttlMs) => {
    const { tokens, asked, clock } = reviews(async () => answer);
    await tokens.attemptToken(TOKEN);
    clock.nowMs = ttlMs - 1;
    await tokens.attemptToken(TOKEN);
    expect(asked).toHaveLength(1);
    clock.nowMs = ttlMs;
    await tokens.attemptToken(TOKEN);
    expect(asked).toHaveLength(2);
  });

  it("never answers for another token", async () => {
    const { tokens, asked } = reviews(async () => KNOWN);
    await tokens.attemptToken("one");
    await tokens.attemptToken("two");
    await tokens.attemptToken("three");
    await tokens.attemptToken("one");
    expect(asked).toHaveLength(4);
  });

  it.each([
    ["no answer", () => Promise.reject(new Error("connection refused"))],
    ["an error", async () => ({ status: 500, body: {} })],
    ["no JSON", async () => ({ status: 201, body: undefined })],
    ["no status", async () => ({ status: 201, body: {} })],
    ["no name", async () => ({ status: 201, body: { status: { authenticated: true, user: {} } } })],
  ])("that is %s lets nobody in, is told, and is asked again", async (_, answer) => {
    const { tokens, asked, failures } = reviews(answer);
    const unreachable = { type: "invalid", fault: "authority-unreachable" };
    expect(await tokens.attemptToken(TOKEN)).toEqual(unreachable);
    expect(await tokens.attemptToken(TOKEN)).toEqual(unreachable);
    expect(asked).toHaveLength(2);
    expect(failures).toHaveLength(2);
    expect(failures.join()).not.toContain(TOKEN);
  });

  it.each([
    ["for another audience", { ...KNOWN.body.status, audiences: ["api"] }],
    ["of an API server that knows no audiences", { ...KNOWN.body.status, audiences: undefined }],
  ])("%s lets nobody in", async (_, status) => {
    const { tokens } = reviews(async () => ({ status: 201, body: { status } }));
    expect(await tokens.attemptToken(TOKEN)).toEqual({ type: "none" });
  });
});

it("a stranger's wrong tokens do not drop the reviews of valid ones", async () => {
  let answer: typeof KNOWN | typeof UNKNOWN = KNOWN;
  const { tokens, asked } = reviews(async () => answer);
  await tokens.attemptToken("valid");
  answer = UNKNOWN;
  for (let number = 0; number < 10; number += 1) await tokens.attemptToken(`junk-${number}`);
  expect(await tokens.attemptToken("valid")).toMatchObject({ type: "known" });
  expect(asked).toHaveLength(11);
});

describe("many tokens at once", () => {
  it("are reviewed so many at a time, equal ones once, the rest in their order and within a bound", async () => {
    const answers: (() => void)[] = [];
    const { tokens, asked } = reviews(() => new Promise((resolve) => answers.push(() => resolve(UNKNOWN))));
    const most = MAX_REVIEWS_IN_FLIGHT + MAX_WAITING_REVIEWS;
    const attempts = Array.from({ length: most }, (_, index) => tokens.attemptToken(`token-${index}`));
    // Equal ones take no place.
    attempts.push(tokens.attemptToken("token-0"), tokens.attemptToken(`token-${most - 1}`));
    await expect(tokens.attemptToken("one-more")).rejects.toMatchObject({ status: { code: 429 } });
    let inFlight = 0;
    for (let answered = 0; answered < most; answered++) {
      await expect.poll(() => answers.length, { interval: 1 }).toBeGreaterThan(answered);
      inFlight = Math.max(inFlight, asked.length - answered);
      answers[answered]?.();
    }
    expect(new Set((await Promise.all(attempts)).map(({ type }) => type))).toEqual(new Set(["none"]));
    expect([inFlight, asked.length]).toEqual([MAX_REVIEWS_IN_FLIGHT, most]);
    const order = asked.map((review) => (review as { spec: { token: string } }).spec.token);
    expect(order).toEqual(Array.from({ length: most }, (_, index) => `token-${index}`));
  });
});

describe("behind an API server that says nothing, a token", () => {
  const silent = () => new Promise<never>(() => {});
  const filled = () => {
    const { tokens, asked } = reviews(silent);
    for (let index = 0; index < MAX_REVIEWS_IN_FLIGHT; index++) void tokens.attemptToken(`token-${index}`);
    return { tokens, asked };
  };

  it("waits so long for its turn, and is told to come again", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { tokens, asked } = filled();
    const ends = Array.from({ length: MAX_WAITING_REVIEWS }, (_, index) =>
      tokens.attemptToken(`waits-${index}`).catch(({ code, status }) => [code, status.details]),
    );
    await vi.advanceTimersByTimeAsync(QUEUE_WAIT_MS);
    expect(new Set((await Promise.all(ends)).map((end) => JSON.stringify(end)))).toEqual(
      new Set([JSON.stringify([429, { retryAfterSeconds: 1 }])]),
    );
    expect(asked).toHaveLength(MAX_REVIEWS_IN_FLIGHT);
    // Its place is free again, and it may come again.
    void tokens.attemptToken("waits-0").catch(() => {});
    await expect(Promise.race([tokens.attemptToken("waits-0"), "waits"])).resolves.toBe("waits");
  });

  it("leaves with the last client that sent it", async () => {
    const { tokens } = filled();
    const clients = [new AbortController(), new AbortController()];
    const [first, second] = clients.map(({ signal }) =>
      tokens.attemptToken(TOKEN, {
        address: "a",
        connection: "a",
        onGone: (listener) => signal.addEventListener("abort", listener),
      }),
    );
    clients[0]?.abort();
    await expect(
      Promise.race([first, new Promise((resolve) => setImmediate(resolve, "waits"))]),
    ).resolves.toBe("waits");
    clients[1]?.abort();
    // One who comes at this moment does not share the refusal.
    const later = tokens.attemptToken(TOKEN);
    await expect(second).rejects.toMatchObject({ code: 429 });
    await expect(
      Promise.race([later, new Promise((resolve) => setImmediate(resolve, "waits"))]),
    ).resolves.toBe("waits");
  });
});

describe("a stranger's tokens", () => {
  it.each([
    ["another address", { address: "198.51.100.1", connection: "b" }],
    ["the same address, over its own connection", { address: "203.0.113.7", connection: "b" }],
  ])("do not keep a token from %s from being reviewed next", async (_, honest) => {
    const answers: (() => void)[] = [];
    const { tokens, asked } = reviews(() => new Promise((resolve) => answers.push(() => resolve(KNOWN))));
    const stranger = { address: "203.0.113.7", connection: "a" };
    const junk = Array.from({ length: MAX_REVIEWS_IN_FLIGHT + MAX_WAITING_REVIEWS }, (__, index) =>
      tokens.attemptToken(`junk-${index}`, stranger).catch((error: unknown) => error),
    );
    const valid = tokens.attemptToken(TOKEN, honest);
    const isAsked = () =>
      asked.some((review) => (review as { spec: { token: string } }).spec.token === TOKEN);
    let reviewed = 0;
    for (; !isAsked() && reviewed < 3; reviewed++) {
      answers[reviewed]?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([isAsked(), reviewed]).toEqual([true, expect.any(Number)]);
    for (let index = 0; index < 2_000; index++) {
      answers[index]?.();
      if (answers[index + 1] === undefined) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await valid).toMatchObject({ type: "known" });
    // The one whose place it took is told to come again.
    const ends = await Promise.all(junk);
    expect(ends.filter((end) => end instanceof Error)).toMatchObject([{ code: 429 }]);
  });
});

it("takes no answer with a part of a wrong type, which Kubernetes cannot decode", async () => {
  const user = { username: "sa", uid: "1", groups: ["g"], extra: { scopes: ["a"] } };
  for (const body of changedValues(KNOWN.body)) {
    const { tokens, failures } = reviews(async () => ({ status: 201, body }), { audiences: [] });
    const attempt = await tokens.attemptToken(TOKEN);
    const about = JSON.stringify(body);
    if (attempt.type !== "known") {
      expect([about, attempt.type, failures.join()]).toEqual([
        about,
        expect.not.stringMatching(/^known$/),
        expect.not.stringMatching(/Cannot|undefined|not a function/),
      ]);
      continue;
    }
    // What is left out or null is empty; every other part is as it was sent.
    const sent = (body as typeof KNOWN.body).status.user as Partial<typeof user>;
    expect([about, attempt.user]).toEqual([
      about,
      {
        name: sent.username,
        uid: sent.uid ?? "",
        groups: sent.groups ?? [],
        extra: Object.fromEntries(Object.entries(sent.extra ?? {}).map(([key, value]) => [key, value ?? []])),
        expiresAtMs: undefined,
      },
    ]);
  }
});
