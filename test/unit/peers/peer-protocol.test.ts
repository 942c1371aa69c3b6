import { describe, expect, it } from "vitest";
import { partialWarningOf } from "../../../src/admin/admin-server.ts";
import { helloOf, readPeerSessions } from "../../../src/peers/peer-protocol.ts";
import { listedSession } from "../../support/listed-session.ts";

const hello = helloOf("0a1b2c3d");
const sent = (value: object): unknown => JSON.parse(JSON.stringify({ ...hello, ...value }));
const session = { ...listedSession(1), tty: true, client: { address: "192.0.2.1", agent: "kubectl" } };

describe("a peer's list of sessions", () => {
  it("has the sessions that are some", () => {
    const wrong = [null, "x", 1, [], {}, { ...session, id: 1 }, { ...session, startedAt: "soon" }];
    const wrongToo = [
      { ...session, tty: "yes" },
      { ...session, client: {} },
      { ...session, upstreamBytes: "1" },
    ];
    const { sessions } = readPeerSessions(sent({ sessions: [...wrong, session, ...wrongToo] }));
    expect(sessions).toEqual([{ ...session, startedAt: session.startedAt.toISOString() }]);
  });

  it("has what a later release adds, but nothing that is nested without end", () => {
    const text = JSON.stringify([
      { ...session, more: [1] },
      { ...session, more: "DEEP" },
    ]);
    const deep = text.replace('"DEEP"', "[".repeat(10_000) + "]".repeat(10_000));
    const { sessions } = readPeerSessions({ ...hello, sessions: JSON.parse(deep) });
    expect(sessions).toMatchObject([{ id: session.id, more: [1] }]);
  });

  it("names each missing worker once, by an index that a worker may have", () => {
    const indices = [0, 1_023, 0, -1, 1_024, 1.5, 2 ** 60, "1", null];
    const partial = indices.map((worker) => ({ worker, problem: "x".repeat(1_000) }));
    const found = readPeerSessions(sent({ sessions: [], partial })).partial;
    expect(found.map(({ worker, problem }) => [worker, problem.length])).toEqual([
      [0, 256],
      [1_023, 256],
    ]);
  });

  it.each([undefined, null, {}, "x"])("is none if it is %j", (sessions) => {
    expect(() => readPeerSessions(sent({ sessions }))).toThrow("the answer has no list of sessions");
  });
});

it("a warning names 16 processes and counts the others", () => {
  const partial = Array.from({ length: 1_000 }, (_, worker) => ({ worker, problem: "" }));
  const warning = partialWarningOf(partial) ?? "";
  expect(warning).toContain("worker 15, and 984 more");
  expect(warning).not.toContain("worker 16");
  expect(partialWarningOf(partial.slice(0, 16))).not.toContain("more");
});
