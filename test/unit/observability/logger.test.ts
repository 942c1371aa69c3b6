import fs from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { createLogger } from "../../../src/observability/logger.ts";

type LogLevel = Parameters<typeof createLogger>[0]["level"];

const SECRET = "s3cr3t-value";

describe("the logger", () => {
  it("writes one JSON object per line, with level, time, process and message", () => {
    const { lines, logger } = recordingLogger("info");
    logger.info({ session: { id: "1" } }, "session ended: 100% %s %d");
    logger.child({ listener: "apiServer" }).warn({ code: 403 }, "refused");
    expect(lines).toEqual([
      {
        level: "info",
        pid: process.pid,
        time: expect.any(String),
        session: { id: "1" },
        msg: "session ended: 100% %s %d",
      },
      {
        level: "warn",
        pid: process.pid,
        time: expect.any(String),
        listener: "apiServer",
        code: 403,
        msg: "refused",
      },
    ]);
    expect(new Date(lines[0]?.time ?? "").toISOString()).toBe(lines[0]?.time);
  });

  const levels: { level: LogLevel; seen: string[] }[] = [
    { level: "debug", seen: ["debug", "info", "warn", "error"] },
    { level: "info", seen: ["info", "warn", "error"] },
    { level: "warn", seen: ["warn", "error"] },
    { level: "error", seen: ["error"] },
    { level: "silent", seen: [] },
  ];
  it.each(levels)("at level $level writes $seen", ({ level, seen }) => {
    const { lines, logger } = recordingLogger(level);
    logger.debug({}, "d");
    logger.info({}, "i");
    logger.warn({}, "w");
    logger.error({}, "e");
    expect(lines.map((line) => line.level)).toEqual(seen);
  });

  const secrets: { name: string; fields: Record<string, unknown> }[] = [
    {
      name: "a header object",
      fields: { headers: { Authorization: `Bearer ${SECRET}`, COOKIE: SECRET, "Set-Cookie": [SECRET] } },
    },
    {
      name: "a header list of pairs",
      fields: {
        headers: [
          ["Host", "x"],
          ["Cookie", `a=${SECRET}`],
        ],
      },
    },
    { name: "a flat header list", fields: { rawHeaders: ["Host", "x", "authorization", SECRET] } },
    {
      name: "a token at depth",
      fields: { user: { access: { bearer_token: SECRET, "id-token": SECRET, password: SECRET } } },
    },
    { name: "a private key", fields: { tls: { key: SECRET, clientKey: SECRET } } },
    { name: "a bearer token in a text", fields: { note: `sent Authorization: bearer ${SECRET}` } },
    {
      name: "a browser's token subprotocol",
      fields: { offered: [`base64url.bearer.authorization.k8s.io.${SECRET}`] },
    },
    { name: "a password in a URL", fields: { upstream: `https://user:${SECRET}@example.test/` } },
    { name: "a command in a query", fields: { url: `/exec?container=main&command=${SECRET}&stdin=1` } },
    {
      name: "the tokens of a form",
      fields: { sent: `grant_type=refresh_token&refresh_token=${SECRET}&client_secret=${SECRET}` },
    },
    {
      name: "the tokens of a JSON text",
      fields: { got: `{"access_token":"${SECRET}", "refresh_token" : "${SECRET}", 'password':'${SECRET}'}` },
    },
    {
      name: "the tokens of a JSON text within another",
      fields: { got: JSON.stringify(JSON.stringify({ id_token: SECRET, clientSecret: SECRET })) },
    },
    {
      name: "a presigned URL",
      fields: { url: `https://s3/x?X-Amz-Security-Token=${SECRET}&X-Amz-Signature=${SECRET}` },
    },
    { name: "a JSON Web Token", fields: { reason: `the token eyJhbGciOiJub25lIn0.e30.${SECRET} expired` } },
    { name: "a command", fields: { command: ["sh", "-c", SECRET] } },
    {
      name: "payload",
      fields: { payload: SECRET, stdin: Buffer.from(SECRET), part: new TextEncoder().encode(SECRET) },
    },
    {
      name: "an error's message, stack and cause",
      fields: { error: new Error(`Bearer ${SECRET}`, { cause: new Error(`Basic ${SECRET}`) }) },
    },
    {
      name: "what a library hangs on an error",
      fields: { error: Object.assign(new Error("x"), { request: { auth: SECRET } }) },
    },
  ];
  it.each(secrets)("never writes $name", ({ fields }) => {
    const { text, logger } = recordingLogger("debug");
    logger.debug(fields, "event");
    logger.child(fields).error({}, "event");
    expect(text()).not.toContain(SECRET);
    expect(text()).toMatch(/\[redacted\]|bytes\]|"name":"Error"/);
  });

  it("never writes a secret of the message, nor a CRI streaming URL anywhere", () => {
    const { text, logger } = recordingLogger("info");
    logger.info(
      { dialled: "http://127.0.0.1:41231/exec/aB3_-xYz" },
      `Bearer ${SECRET} to /portforward/aB3_-xYz?x=1`,
    );
    expect(text()).not.toContain(SECRET);
    expect(text()).not.toContain("aB3_-xYz");
    expect(text()).toContain("/exec/[redacted]");
  });

  it("keeps what is no secret, kubelet paths included", () => {
    const { lines, logger } = recordingLogger("info");
    const fields = {
      path: "/exec/default0/web/main",
      code: 200,
      none: null,
      big: 10n,
      at: new Date(0),
      token_review: true,
    };
    logger.info(fields, "kept");
    expect(lines[0]).toMatchObject({ ...fields, big: "10", at: "1970-01-01T00:00:00.000Z" });
  });

  it("bounds what it writes: text, entries, depth, cycles", () => {
    const cycle: { long: string; list: number[]; self?: unknown } = {
      long: "x".repeat(100_000),
      list: Array(10_000).fill(1),
    };
    cycle.self = cycle;
    const { text, logger } = recordingLogger("info");
    logger.info(cycle, "y".repeat(100_000));
    expect(text().length).toBeLessThan(100_000);
  });

  it("cuts what peers choose: 256 characters of a path and its names, 1,024 of other texts", () => {
    const { lines, text, logger } = recordingLogger("info");
    const long = "a".repeat(8_192);
    const error = new Error(long, { cause: new Error(long) });
    logger.info(
      {
        namespace: long,
        pod: long,
        container: long,
        path: `/${long}`,
        reason: long,
        problems: [long],
        error,
      },
      "request refused",
    );
    expect(lines[0]).toMatchObject({
      namespace: `${"a".repeat(256)}...`,
      pod: `${"a".repeat(256)}...`,
      container: `${"a".repeat(256)}...`,
      path: `/${"a".repeat(255)}...`,
      reason: `${"a".repeat(1_024)}...`,
      problems: [`${"a".repeat(1_024)}...`],
      error: { message: `${"a".repeat(1_024)}...`, stack: expect.stringContaining("logger.test.ts") },
    });
    expect(text().length).toBeLessThan(20_000);
  });

  it("finds a secret where a text is cut", () => {
    const { text, logger } = recordingLogger("info");
    const url = (before: number) => `${"-".repeat(before)} redis://user:${SECRET}@host.test/`;
    for (const limit of [256, 1_024]) {
      for (let before = limit - 40; before < limit; before++) {
        logger.info({ path: url(before), reason: url(before), error: new Error(url(before)) }, url(before));
      }
    }
    expect(text()).not.toContain("s3cr");
  });

  it.each([
    "https://user:SECRET@host.test",
    "9https://user:SECRET@host.test",
    "redis://:SECRET@host.test",
    "http://user:SECR@SECRET@host.test",
    "x.y://SECRET@host.test",
  ])("takes the credentials out of %s", (url) => {
    const { text, logger } = recordingLogger("info");
    logger.info({ url: url.replaceAll("SECRET", SECRET) }, "event");
    expect(text()).not.toContain(SECRET);
    expect(text()).toContain("[redacted]@host.test");
  });

  it("writes text for people, a line for each message and none for what a value holds", () => {
    const { text, logger } = textLogger();
    const error = Object.assign(new Error("no\nroute"), {
      code: "EHOSTUNREACH",
      stack: "Error: no\n    at dial (a.ts:1:2)",
    });
    logger.warn(
      { node: "a", why: 'said "no"\n\u001b[2J\u009b2J', n: 3, session: { id: "1" }, error },
      "a node\u001b[1m",
    );
    expect(text().replace(/^\S+Z/, "TIME")).toBe(
      'TIME WARN  a node\ufffd[1m node=a why="said \\"no\\"\\n\\u001b[2J\ufffd2J" n=3 session={"id":"1"} ' +
        'error="Error: no route (EHOSTUNREACH)"\n    at dial (a.ts:1:2)\n',
    );
  });

  it.each([
    { isTTY: true, begins: /^\d{4}-\d\d-\d\dT\S+Z INFO {2}ready/ },
    { isTTY: false, begins: /^\{"level":"info"/ },
  ])("chooses the format by itself: terminal $isTTY", ({ isTTY, begins }) => {
    const write = vi.spyOn(fs, "writeSync").mockImplementation((_fd, line) => String(line).length);
    const before = process.stderr.isTTY;
    process.stderr.isTTY = isTTY;
    createLogger({ level: "info" }).info({}, "ready");
    process.stderr.isTTY = before;
    const lines = write.mock.calls.map(([, line]) => String(line));
    write.mockRestore();
    expect(lines).toEqual([expect.stringMatching(begins)]);
  });

  it("takes another level and format while it runs, for its children as well", () => {
    const { text, logger } = textLogger();
    const child = logger.child({ listener: "admin" });
    logger.configure({ level: "error", format: "json" });
    child.info({}, "not seen");
    child.error({}, "seen");
    expect(JSON.parse(text())).toMatchObject({ listener: "admin", msg: "seen" });
  });

  it("writes to standard error by default, before the call returns", () => {
    const write = vi.spyOn(fs, "writeSync").mockImplementation((_fd, line) => String(line).length);
    createLogger({ level: "info" }).info({}, "last words");
    const calls = write.mock.calls.map(([fd, line]) => ({ fd, line: JSON.parse(String(line)) as unknown }));
    write.mockRestore();
    expect(calls).toEqual([{ fd: 2, line: expect.objectContaining({ level: "info", msg: "last words" }) }]);
  });
});

interface LogLine {
  readonly level: string;
  readonly time: string;
  readonly [field: string]: unknown;
}

function textLogger() {
  const written: string[] = [];
  const destination = { write: (line: string) => void written.push(line) };
  return {
    logger: createLogger({ level: "info", format: "text", destination }),
    text: () => written.join(""),
  };
}

function recordingLogger(level: LogLevel) {
  const written: string[] = [];
  const lines: LogLine[] = [];
  const write = (line: string): void => {
    expect(line.endsWith("\n")).toBe(true);
    written.push(line);
    lines.push(JSON.parse(line) as LogLine);
  };
  return { logger: createLogger({ level, destination: { write } }), lines, text: () => written.join("") };
}
