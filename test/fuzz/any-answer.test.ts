import { constants, type OutgoingHttpHeaders } from "node:http2";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answered, type AnsweredClient, http1Client, http2Client } from "../support/answered.ts";
import { startScriptedApiLeg } from "../support/scripted-api-leg.ts";
import type { Lines, ScriptedAnswer, ScriptedBackend } from "../support/scripted-backend.ts";
import { HOSTS, startScriptedDoor } from "../support/scripted-door.ts";

/** A run of 100,000 takes about half an hour. */
const ROUNDS = Number(process.env.SLUICE_FUZZ_ROUNDS ?? 300);
const HANG_MS = 20_000;

/** Every field that Node's HTTP/2 knows but Expect, with which its HTTP/1 writes heads as UTF-8; names that are something else to JavaScript. */
const NAMES = [
  ...Object.entries(constants as unknown as Record<string, unknown>)
    .filter(([key, name]) => key.startsWith("HTTP2_HEADER_") && !String(name).startsWith(":"))
    .map(([, name]) => String(name))
    .filter((name) => name !== "expect"),
  ...["constructor", "__proto__", "hasOwnProperty", "toString", "X-A", "x-a", "Trailer", "!#$%&'*+-.^_`|~"],
];
const VALUES = [
  "",
  "x",
  "0",
  "5",
  "close",
  "trailers",
  "chunked",
  "etag, x-a",
  "nosniff",
  "\xe9\xff",
  "a\tb",
];
const STATUSES = [101, 200, 201, 204, 205, 206, 226, 301, 304, 404, 418, 429, 500, 503, 599, 600, 777, 999];

const line = fc.tuple(
  fc.constantFrom(...NAMES),
  fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(...VALUES) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 30_000 }).map((length) => "v".repeat(length)) },
  ),
);
/** Now and then a line stands twice, with another value. */
const lines: fc.Arbitrary<Lines> = fc
  .array(fc.tuple(line, fc.option(fc.constantFrom(...VALUES), { freq: 2 })), { maxLength: 6 })
  .map((pairs) =>
    pairs.flatMap(([first, again]): Lines => (again === null ? [first] : [first, [first[0], again]])),
  );
const anyAnswer: fc.Arbitrary<ScriptedAnswer> = fc.record(
  {
    interims: fc.array(fc.record({ status: fc.constantFrom(100, 102, 103, 104, 199), lines }), {
      maxLength: 3,
    }),
    status: fc.oneof(fc.constantFrom(...STATUSES), fc.integer({ min: 200, max: 999 })),
    reason: fc.constantFrom("", "OK", "\xe9", "a b  c"),
    lines,
    body: fc.integer({ min: 0, max: 20_000 }).map((length) => "b".repeat(length)),
    framing: fc.constantFrom("length", "chunked", "close"),
    trailers: lines,
    cutAt: fc.integer({ min: 0, max: 2_000 }),
  },
  { requiredKeys: ["status", "lines"] },
);

/** Of one hop, or of the framing that each version has of its own. */
const OWN_OF_A_VERSION =
  /^(:status|connection|keep-alive|proxy-connection|transfer-encoding|upgrade|http2-settings|te|content-length|trailer|date|cookie)$/;

/** What both clients were given, as far as both versions can say it. */
function sharedHeaders({ headers }: Answered, other: Answered): Record<string, string> {
  const shared: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (OWN_OF_A_VERSION.test(name)) continue;
    // Of a field that may stand once, HTTP/2 has the first.
    const theirs = other.headers.get(name);
    shared[name] = theirs !== undefined && value.startsWith(`${theirs}, `) ? theirs : value;
  }
  return shared;
}

/** A peer whose answers travel to both clients. */
interface Way {
  readonly peers: readonly { readonly script: ScriptedBackend; readonly host: string }[];
  readonly clients: Readonly<Record<"h1" | "h2", AnsweredClient>>;
  readonly path: string;
  /** The gateway's own answer in place of the peer's. */
  isRefusal(answered: Answered): boolean;
  close(): Promise<void>;
}

async function startDoor(): Promise<Way> {
  const { backends, clients, stop } = await startScriptedDoor();
  return {
    peers: [
      { script: backends["http/1.1"], host: HOSTS["http/1.1"] },
      { script: backends.h2c, host: HOSTS.h2c },
    ],
    clients,
    path: "/",
    isRefusal: ({ status, body }) => status === 502 && body.startsWith("502 Bad Gateway"),
    close: stop,
  };
}

async function startApiLeg(path: string, lines: readonly string[], more: OutgoingHttpHeaders): Promise<Way> {
  const leg = await startScriptedApiLeg();
  const { h1, h2 } = leg.authorities;
  const clients = {
    h1: http1Client(Number(h1.split(":")[1]), lines),
    h2: http2Client(`https://${h2}`, more),
  };
  return {
    peers: [{ script: leg.peer, host: "gateway" }],
    clients,
    path,
    isRefusal: ({ status, body }) => status >= 500 && body.startsWith('{"kind":"Status"'),
    close: async () => {
      clients.h2.close();
      await leg.close();
    },
  };
}

const WEBSOCKET = {
  "sec-websocket-version": "13",
  "sec-websocket-protocol": "v5.channel.k8s.io",
};
const EXEC = "/api/v1/namespaces/default/pods/web/exec?stdout=true&command=x";

const WAYS: readonly (readonly [what: string, start: () => Promise<Way>])[] = [
  ["a backend of the front door", startDoor],
  ["an API server", () => startApiLeg("/version", [], {})],
  [
    "a node that refuses",
    () =>
      startApiLeg(
        EXEC,
        [
          ...Object.entries(WEBSOCKET).map(([name, value]) => `${name}: ${value}`),
          ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="],
        ],
        { ...WEBSOCKET, ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https" },
      ),
  ],
];

describe.each(WAYS)("any answer of %s", (what, start) => {
  let way: Way;

  beforeAll(async () => {
    way = await start();
  });
  afterAll(() => way.close());

  it(
    "is one answer to HTTP/1.1 and HTTP/2 clients, or a 502, and ends nothing else",
    async () => {
      const counted = { rounds: 0, whole: 0, cut: 0, refused: 0 };
      const { clients, path } = way;
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...way.peers), anyAnswer, async ({ script, host }, answer) => {
          script.answer = answer;
          const h1 = await clients.h1.get(host, path);
          const h2 = await clients.h2.get(host, path);
          counted.rounds += 1;
          expect(h2.status).toBe(h1.status);
          // A length of 0 is whole with its head over HTTP/1.1, and a 205 over HTTP/2, whatever a backend sends or breaks off behind it.
          if (h1.headers.get("content-length") !== "0" && h1.status !== 205) {
            expect(h2.isWhole).toBe(h1.isWhole);
          }
          expect(h2.interims).toEqual(h1.interims);
          expect(sharedHeaders(h2, h1)).toEqual(sharedHeaders(h1, h2));
          if (!h2.isWhole) counted.cut += 1;
          else if (way.isRefusal(h1)) counted.refused += 1;
          else {
            counted.whole += 1;
            if (h1.isWhole && h1.status !== 205) expect(h2.body === h1.body).toBe(true);
          }
        }),
        {
          numRuns: ROUNDS,
          timeout: HANG_MS,
          ...(process.env.SLUICE_FUZZ_SEED && { seed: Number(process.env.SLUICE_FUZZ_SEED) }),
        },
      );
      console.log(`any answer of ${what}: ${JSON.stringify(counted)}`);
      // The generator makes all kinds. What a node says instead of 101 is read before it is handed on.
      const kinds = [counted.whole, counted.refused, ...(path === EXEC ? [] : [counted.cut])];
      expect(Math.min(...kinds)).toBeGreaterThan(0);
    },
    60_000 + ROUNDS * 200,
  );
});
