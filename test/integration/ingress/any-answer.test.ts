import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lines, ScriptedAnswer } from "../../support/scripted-backend.ts";
import { HOSTS, type ScriptedDoor, startScriptedDoor } from "../../support/scripted-door.ts";

let door: ScriptedDoor;
beforeAll(async () => {
  door = await startScriptedDoor();
});
afterAll(() => door.stop());

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
    const { backends, clients } = door;
    backends[version].answer = answer;
    const given = await clients[client].get(HOSTS[version]);
    expect(given).toMatchObject({ status, isWhole: true });
    backends[version].answer = { status: 200, lines: [], body: "another" };
    expect(await clients[client].get(HOSTS[version])).toMatchObject({ status: 200, body: "another" });
  });
});
