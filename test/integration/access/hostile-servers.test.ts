import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { askHttpsUrl } from "@sluice/client/internal/http/upstream/ask-json";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { OidcKeySet } from "../../../src/access/authn/oidc-key-set.ts";
import { TokenReviews } from "../../../src/access/authn/token-review.ts";
import type { Attributes } from "../../../src/access/authz/authorizer.ts";
import { WebhookAuthorizer } from "../../../src/access/authz/webhook/webhook-authorizer.ts";
import { valkeyConnector } from "../../../src/access/policy/valkey-connection.ts";
import { webhookClient } from "../../../src/access/webhook-client.ts";
import { type Act, endlessly, FAULTS, slowly, withLength } from "../../support/hostile-acts.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";
import { testUpstreams } from "../../support/test-upstreams.ts";

const TIMEOUT_MS = 300;
/** What a busy machine may add to the timeout. */
const SPARE_MS = 3_000;
/** How much of an endless answer a client may take, with both systems' buffers. */
const MAX_TAKEN_BYTES = 32 * 1024 * 1024;

const ALLOWED = { kind: "SubjectAccessReview", status: { allowed: true } };
const KNOWN = { kind: "TokenReview", status: { authenticated: true, user: { username: "jane" } } };
const WRONG = [5, "x", [], {}, [null], "HUGE", "LONG"];
/** JSON with each value of a wrong type in place of the field; huge numbers as their digits. */
function wrongIn(body: object, field: string, isRight: (value: unknown) => boolean = () => false): string[] {
  return WRONG.filter((value) => !isRight(value)).map((value) => {
    const copy = structuredClone(body) as Record<string, unknown>;
    const path = field.split(".");
    const last = path.pop() as string;
    let parent = copy;
    for (const name of path) parent = parent[name] as Record<string, unknown>;
    parent[last] = value;
    return JSON.stringify(copy).replace('"HUGE"', "1e999").replace('"LONG"', "9".repeat(400));
  });
}
const isText = (value: unknown): boolean => value === "x";
const isObject = (value: unknown): boolean => JSON.stringify(value) === "{}";
const WRONG_REVIEWS = [
  ...["kind", "status.reason", "status.evaluationError"].flatMap((field) =>
    wrongIn(ALLOWED, field, field === "kind" ? undefined : isText),
  ),
  ...["status", "status.allowed", "status.denied"].flatMap((field) => wrongIn(ALLOWED, field)),
];
const WRONG_TOKENS = [
  ...["kind", "status", "status.authenticated", "status.user.username"].flatMap((field) =>
    wrongIn(
      KNOWN,
      field,
      field === "status.user.username" ? isText : field === "status" ? isObject : undefined,
    ),
  ),
  ...wrongIn(KNOWN, "status.user"),
  ...wrongIn(KNOWN, "status.user.uid", isText),
  ...wrongIn(KNOWN, "status.user.extra", (value) => isObject(value) || JSON.stringify(value) === "[]").concat(
    wrongIn(KNOWN, "status.user.extra", (value) => !Array.isArray(value)),
  ),
  ...["status.audiences", "status.user.groups"].flatMap((field) =>
    wrongIn(KNOWN, field, (value) => JSON.stringify(value) === "[]"),
  ),
];

let certificate: TestCertificate;
let plain: { server: Server; port: number };
let secure: { server: Server; port: number };
let act: Act = () => {};
let honest = "";
const sockets = new Set<Socket>();
const unhandled: unknown[] = [];
const note = (reason: unknown): number => unhandled.push(reason);
const honestly: Act = (socket) => socket.write(withLength(honest));
const says =
  (text: string): Act =>
  (socket) =>
    socket.write(withLength(text));

function serve(socket: Socket): void {
  sockets.add(socket);
  socket.on("error", () => {}).on("data", () => act(socket, honest));
}

async function listening(server: Server): Promise<{ server: Server; port: number }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

beforeAll(async () => {
  certificate = await issueCertificate({ commonName: "issuer" }, undefined, { addresses: ["127.0.0.1"] });
  plain = await listening(createServer({ allowHalfOpen: true }, serve));
  secure = await listening(createTlsServer({ ...certificate, allowHalfOpen: true }, serve));
  process.on("unhandledRejection", note);
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  expect(unhandled).toEqual([]);
});
afterAll(() => {
  process.off("unhandledRejection", note);
  plain.server.close();
  secure.server.close();
});

const attributesOf = (name: string): Attributes => ({
  user: { name, uid: "", groups: [], extra: {} },
  verb: "get",
  isResourceRequest: false,
  namespace: "",
  apiGroup: "",
  apiVersion: "",
  resource: "",
  subresource: "",
  name: "",
  path: "/",
});

async function clientsOf(
  use: "tokenReview" | "authorizationWebhook" | "auditWebhook",
  timeoutMs = TIMEOUT_MS,
) {
  const target = { kind: "url", url: `http://127.0.0.1:${plain.port}/` } as never;
  return webhookClient(target, { defaultPath: "/", timeoutMs, use, upstreams: testUpstreams() });
}

/** What each client says of its server's answer: true if it allows. */
const CLIENTS = {
  SubjectAccessReview: async () => {
    honest = JSON.stringify(ALLOWED);
    const client = await clientsOf("authorizationWebhook");
    const authorizer = new WebhookAuthorizer(client.ask, {
      version: "v1",
      authorizedTtlMs: 60_000,
      unauthorizedTtlMs: 60_000,
      maxCachedDecisions: 10,
      nowMs: () => performance.now(),
      onFailure: () => {},
    });
    const ask = async (name = "jane") =>
      (await authorizer.authorize(attributesOf(name))).decision === "allow";
    return { ask, wrong: WRONG_REVIEWS, stop: client.stop };
  },
  TokenReview: async () => {
    honest = JSON.stringify(KNOWN);
    const client = await clientsOf("tokenReview");
    const reviews = new TokenReviews(client.ask, {
      version: "v1",
      audiences: [],
      cacheTtlMs: 60_000,
      failureCacheTtlMs: 60_000,
      maxCachedTokens: 10,
      nowMs: () => performance.now(),
      epochMs: () => Date.now(),
      onFailure: () => {},
    });
    const ask = async (name = "jane") => (await reviews.attemptToken(name)).type === "known";
    return { ask, wrong: WRONG_TOKENS, stop: client.stop };
  },
  OIDC: async () => {
    const issuerUrl = `https://127.0.0.1:${secure.port}`;
    honest = JSON.stringify({ issuer: issuerUrl, jwks_uri: `${issuerUrl}/keys`, keys: [] });
    let nowMs = 0;
    const getJson = (url: string) => askHttpsUrl(url, certificate.cert, { timeoutMs: TIMEOUT_MS });
    const keySet = new OidcKeySet({ issuerUrl, discoveryUrl: undefined }, getJson, () => nowMs);
    const ask = async () => {
      nowMs += 10_000;
      return keySet.verified(async () => true).catch(() => false);
    };
    const document = JSON.parse(honest) as object;
    const wrong = ["issuer", "jwks_uri", "keys"].flatMap((field) =>
      wrongIn(document, field, (value) => field === "keys" && JSON.stringify(value) === "[]"),
    );
    // A lie that is well-formed: the place of the keys is asked for anew when they are not there.
    wrong.push(JSON.stringify({ ...document, jwks_uri: "https://127.0.0.1:1/keys" }));
    return { ask, wrong, stop: () => {} };
  },
};

it.each(
  Object.keys(CLIENTS) as (keyof typeof CLIENTS)[],
)("%s: no hostile answer allows, holds or spoils the next one", { timeout: 60_000 }, async (kind) => {
  const problems: string[] = [];
  const { wrong } = await CLIENTS[kind]();
  const faults: [string, Act][] = [
    ...Object.entries(FAULTS),
    ...wrong.map((text): [string, Act] => [text.slice(0, 120), says(text)]),
  ];
  for (const [name, fault] of faults) {
    const { ask, stop } = await CLIENTS[kind]();
    act = fault;
    const startedMs = performance.now();
    if (await ask()) problems.push(`${name}: allowed`);
    if (performance.now() - startedMs > TIMEOUT_MS + SPARE_MS) problems.push(`${name}: too long`);
    const taken = [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0);
    if (taken > MAX_TAKEN_BYTES) problems.push(`${name}: took ${taken} bytes`);
    act = honestly;
    if (!(await ask())) problems.push(`${name}: the honest answer after it did not count`);
    stop();
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  }
  expect(problems).toEqual([]);
});

it.each([
  "SubjectAccessReview",
  "TokenReview",
] as const)("%s: a thousand who wait for a silent server do not hold up one who is known", async (kind) => {
  const { ask, stop } = await CLIENTS[kind]();
  act = honestly;
  expect(await ask("known")).toBe(true);
  act = () => {};
  let answered = 0;
  const waiting = Array.from({ length: 1_000 }, (_, index) =>
    ask(`user-${index}`)
      .catch(() => false)
      .then((isAllowed) => {
        answered += 1;
        return isAllowed;
      }),
  );
  expect(await ask("known")).toBe(true);
  expect(answered).toBe(0);
  act = (socket) => socket.resetAndDestroy();
  for (const socket of sockets) socket.destroy();
  expect((await Promise.all(waiting)).some(Boolean)).toBe(false);
  stop();
}, 30_000);

const STORE_FAULTS: Record<string, Act> = {
  nothing: () => {},
  "an array byte by byte": slowly("*1\r\n:", "0"),
  "elements without end": endlessly("*100000000\r\n", ":0\r\n"),
  "a line without end": endlessly("+", "a"),
  "a number of 400 digits": (socket) => socket.write(`:${"9".repeat(400)}\r\n`),
  "a nested array without end": endlessly("", "*1\r\n"),
  "an array nested as deep as the bound": (socket) => socket.write("*1\r\n".repeat(15_000)),
  garbage: (socket) => socket.write("\xff\xfe HTTP/1.1\r\n"),
  "half-close": (socket) => socket.end("*1\r"),
  reset: (socket) => socket.resetAndDestroy(),
};

it.each(Object.keys(STORE_FAULTS))("quota store: %s", async (name) => {
  act = STORE_FAULTS[name] as Act;
  const connect = await valkeyConnector({
    url: `redis://127.0.0.1:${plain.port}`,
    commandTimeoutMs: TIMEOUT_MS,
  } as never);
  const startedMs = performance.now();
  const run = async () => {
    const connection = await connect(() => {});
    try {
      return await connection.run(["key"], ["value"]);
    } finally {
      connection.close();
    }
  };
  const answer = await run().catch(() => "failed");
  expect(Array.isArray(answer)).toBe(false);
  expect(performance.now() - startedMs).toBeLessThan(1_000 + TIMEOUT_MS + SPARE_MS);
  expect([...sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0)).toBeLessThan(MAX_TAKEN_BYTES);
});

it("interim answers are read to the bound, long before the time limit", async () => {
  act = FAULTS["interim answers without end"] as Act;
  const client = await clientsOf("tokenReview", 20_000);
  await expect(client.ask({})).rejects.toThrow("more than 16 interim answers");
  client.stop();
});

/** Whole answers: an audit webhook's body means nothing. */
const WHOLE = /longer|HTML|UTF-8|gzip|null|array/;

it("audit webhook: only a whole answer counts as stored", { timeout: 30_000 }, async () => {
  honest = "{}";
  for (const [name, fault] of Object.entries(FAULTS).filter(([key]) => !WHOLE.test(key))) {
    const client = await clientsOf("auditWebhook");
    act = fault;
    const status = await client.ask({}).then(
      (answer) => answer.status,
      () => 0,
    );
    expect(status, name).toBe(name === "a redirect" ? 307 : 0);
    act = honestly;
    expect((await client.ask({})).status, name).toBe(200);
    client.stop();
  }
});
