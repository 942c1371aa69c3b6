import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AnsweredClient, http1Client, http2Client } from "../../support/answered.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import {
  type Lines,
  type ScriptedAnswer,
  type ScriptedBackend,
  startScriptedBackend,
} from "../../support/scripted-backend.ts";

let door: FrontDoor;
let backends: Record<"http/1.1" | "h2c", ScriptedBackend>;
let clients: Record<"h1" | "h2", AnsweredClient>;

const HOSTS = { "http/1.1": "one.test", h2c: "two.test" } as const;

beforeAll(async () => {
  backends = {
    "http/1.1": await startScriptedBackend("http/1.1"),
    h2c: await startScriptedBackend("h2c"),
  };
  const rule = (host: string, service: string) => ({
    host,
    http: { paths: [{ path: "/", pathType: "Prefix", backend: backend(service) }] },
  });
  door = await FrontDoor.start([
    ...serviceObjects("one", [backends["http/1.1"]]),
    ...serviceObjects("two", [backends.h2c], { appProtocol: "kubernetes.io/h2c" }),
    ingressObject("both", { rules: [rule("one.test", "one"), rule("two.test", "two")] }),
  ]);
  await door.serves(1);
  clients = { h1: http1Client(door.httpPort), h2: http2Client(`http://127.0.0.1:${door.httpPort}`) };
});
afterAll(async () => {
  clients.h2.close();
  await door.stop();
  await Promise.all(Object.values(backends).map((one) => one.stop()));
});

const twice = (name: string, first: string, second: string): Lines => [
  [name, first],
  [name, second],
];

const ANSWERS: readonly (readonly [what: string, answer: ScriptedAnswer, status: number])[] = [
  ["Content-Type twice", { status: 200, lines: twice("Content-Type", "a/b", "c/d"), body: "x" }, 200],
  ["ETag twice", { status: 200, lines: twice("ETag", '"1"', '"2"'), body: "x" }, 200],
  [
    "X-Content-Type-Options twice",
    { status: 200, lines: twice("X-Content-Type-Options", "nosniff", "nosniff"), body: "x" },
    200,
  ],
  ["a field named constructor", { status: 200, lines: [["constructor", "x"]], body: "x" }, 200],
  ["a field named __proto__, twice", { status: 200, lines: twice("__proto__", "x", "y"), body: "x" }, 200],
  ["status 205 with a body", { status: 205, lines: [], body: "x" }, 205],
  ["status 600", { status: 600, lines: [], body: "x" }, 502],
  ["status 999", { status: 999, lines: [], body: "x" }, 502],
  [
    "a 103 with Content-Type twice",
    { interims: [{ status: 103, lines: twice("Content-Type", "a/b", "c/d") }], status: 200, lines: [] },
    200,
  ],
  [
    "trailers with ETag twice",
    { status: 200, lines: [], body: "x", framing: "chunked", trailers: twice("ETag", "1", "2") },
    200,
  ],
];

/** What HTTP/2 itself forbids: a backend that speaks it is refused before its answer is one. */
const CONNECTION_LINES: readonly (readonly [what: string, answer: ScriptedAnswer, status: number])[] = [
  ["HTTP2-Settings", { status: 200, lines: [["HTTP2-Settings", "AAMAAABk"]], body: "x" }, 200],
  [
    "a 103 with HTTP2-Settings",
    { interims: [{ status: 103, lines: [["HTTP2-Settings", "A"]] }], status: 200, lines: [] },
    200,
  ],
  [
    "trailers with HTTP2-Settings",
    { status: 200, lines: [], body: "x", framing: "chunked", trailers: [["HTTP2-Settings", "A"]] },
    200,
  ],
];

describe("one answer of a backend", () => {
  const table = [
    ...ANSWERS.flatMap((row) => [["http/1.1", ...row] as const, ["h2c", ...row] as const]),
    ...CONNECTION_LINES.map((row) => ["http/1.1", ...row] as const),
  ].flatMap(([version, ...row]) => [[version, "h1", ...row] as const, [version, "h2", ...row] as const]);

  it.each(
    table,
  )("over %s to an %s client ends that exchange at most: %s", async (version, client, _what, answer, status) => {
    backends[version].answer = answer;
    const given = await clients[client].get(HOSTS[version]);
    expect(given).toMatchObject({ status, isWhole: true });
    backends[version].answer = { status: 200, lines: [], body: "another" };
    expect(await clients[client].get(HOSTS[version])).toMatchObject({ status: 200, body: "another" });
  });
});
