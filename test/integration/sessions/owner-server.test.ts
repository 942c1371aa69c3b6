import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SessionClock } from "../../../packages/client/src/net/session-clock.ts";
import { encodeResumption, RESUME_HEADER, RESUME_PROTOCOL } from "../../../protocols/resume/index.ts";
import { refuseUpgrade } from "../../../src/listeners/answer.ts";
import { createLogger } from "../../../src/observability/logger.ts";
import { SessionOwner } from "../../../src/sessions/resumable/session-owner.ts";
import { createOwnerServer } from "../../../src/sessions/resumption/owner-server.ts";
import { callerLine } from "../../../src/sessions/resumption/resume-session.ts";
import { defaultTimeouts } from "../../support/default-configuration.ts";

const USER = { name: "Jörg", uid: "1", groups: ["dev"], extra: {} };
const RESUMPTION = encodeResumption({
  session: "A".repeat(22),
  attempt: 1,
  received: 0,
  proof: "A".repeat(43),
});

describe("the server that other processes ask for a session", () => {
  let folder: string;
  let owner: SessionOwner;
  let server: Server;
  beforeEach(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-owner-"));
    owner = new SessionOwner({ socketFolder: folder });
    const logger = createLogger({ level: "debug", destination: { write: () => {} } });
    const timeouts = { ...defaultTimeouts, lingerIdleMs: 1_000, lingerMaxMs: 1_000 };
    const gateway = { resumable: undefined, clock: new SessionClock(), timeouts, logger };
    server = createOwnerServer(gateway, { refuseUpgrade });
    server.listen(owner.socketPath as string);
    await once(server, "listening");
  });
  afterEach(async () => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  });

  /** The whole answer to an upgrade with these lines. */
  async function answer(...lines: (readonly [string, string])[]): Promise<string> {
    const socket = connect(owner.socketPath as string);
    const all = [["Host", "owner"], ["Connection", "Upgrade"], ["Upgrade", "websocket"], ...lines];
    socket.write(`GET / HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
    const told = await text(socket);
    socket.end();
    return told;
  }
  const asked = [
    ["Sec-WebSocket-Version", "13"],
    ["Sec-WebSocket-Key", Buffer.alloc(16).toString("base64")],
    ["Sec-WebSocket-Protocol", RESUME_PROTOCOL],
    [RESUME_HEADER, RESUMPTION],
  ] as const;

  it("says what it does not hold", async () => {
    expect(await answer(...asked, callerLine(USER))).toMatch(/^HTTP\/1\.1 410 .*"reason":"Expired"/s);
  });

  it("refuses who names no user, and what is no resumption", async () => {
    expect(await answer(...asked)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await answer(callerLine(USER))).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("survives a user that is none", async () => {
    expect(await answer(...asked, ["Sluice-Caller", "bm90IEpTT04"])).toMatch(/^HTTP\/1\.1 500 /);
    expect(await answer(...asked, callerLine(USER))).toMatch(/^HTTP\/1\.1 410 /);
  });

  it("takes a user in 20,000 groups, and refuses a head of more than 1 MiB", async () => {
    const groups = Array.from({ length: 20_000 }, (_, index) => `group-number-${index}`);
    expect(await answer(...asked, callerLine({ ...USER, groups }))).toMatch(/^HTTP\/1\.1 410 /);
    expect(await answer(...asked, ["X", "x".repeat(1024 * 1024)])).toMatch(/^HTTP\/1\.1 431 /);
  });
});

describe("a owner's sessions", () => {
  it("are named 16 bytes, by which each owner knows its own and finds the others'", () => {
    const [one, other] = [
      new SessionOwner({ socketFolder: "/folder" }),
      new SessionOwner({ socketFolder: "/folder" }),
    ];
    const session = one.newSession();
    expect(session).toMatch(/^[\w-]{22}$/);
    expect(Buffer.from(session, "base64url").toString("base64url")).toBe(session);
    expect(one.newSession()).not.toBe(session);
    expect(one.placeOf(session)).toEqual({ at: "here" });
    expect(other.placeOf(session)).toEqual({ at: "sibling", socketPath: one.socketPath });
    expect(path.dirname(one.socketPath ?? "")).toBe("/folder");
  });
});
