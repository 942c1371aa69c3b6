import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { streamingSessionOf } from "../../../../src/session-api/streaming-session.ts";
import { eventually } from "../../../support/eventually.ts";
import { GatewayFiles } from "../../../support/gateway-files.ts";
import { collect } from "../../../support/kubectl.ts";
import { listedSession } from "../../../support/listed-session.ts";
import { SluiceRunner } from "../../../support/sluice-runner.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";
import { V5Client } from "../../../support/v5-client.ts";

/** The received payload, without each message's channel byte. */
const shownTo = ({ messages }: V5Client) =>
  Buffer.concat(messages.map((message) => message.subarray(1))).toString("latin1");

describe("sluice sessions, at a gateway", () => {
  let gateway: TestGateway;
  let sluice: SluiceRunner;
  beforeAll(async () => {
    gateway = await startTestGateway({ scheme: "http", fakeNodes: [{}] });
    sluice = new SluiceRunner(gateway.kubeconfig);
  }, 60_000);
  afterAll(async () => {
    sluice?.remove();
    await gateway?.stop();
  });

  it("lists a session in each format, and ends it", async () => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    expect(await sluice.run(["sessions", "list", "-o", "name"])).toEqual({
      exitCode: 0,
      stdout: `${id}\n`,
      stderr: "",
    });
    const { stdout: table } = await sluice.run(["sessions", "list", "-A", "-o", "wide"]);
    const [head = "", row = ""] = table.split("\n");
    expect(head).toMatch(/^NAMESPACE +NAME +POD +CONTAINER +SUBRESOURCE +USER +AGE +NODE +CLIENT +PLAN /);
    expect(row).toMatch(new RegExp(`^default +${id} +web +main +exec +tester +\\d+s +node `));
    expect(row.indexOf("web")).toBe(head.indexOf("POD"));
    const { stdout: json } = await sluice.run(["sessions", "list", "-o", "json"]);
    expect(JSON.parse(json)).toMatchObject({
      kind: "StreamingSessionList",
      items: [{ metadata: { name: id } }],
    });
    // As people read it: what an object is comes first.
    expect(Object.keys(JSON.parse(json).items[0]).slice(0, 2)).toEqual(["apiVersion", "kind"]);
    const { stdout: yaml } = await sluice.run(["sessions", "list", "-o", "yaml"]);
    expect(parse(yaml, { version: "1.1" })).toMatchObject({
      kind: "StreamingSessionList",
      items: [{ kind: "StreamingSession", metadata: { name: id }, spec: { pod: "web" } }],
    });
    // One that cannot be ended keeps no other from its end.
    const names = ["gone", `streamingsession.sluice.dev/${id}`, "over"];
    const ended = await sluice.run(["sessions", "end", ...names, "-A", "-n", "other", "--reason", "INC 42"]);
    const unknown = (name: string) =>
      `Error from server (NotFound): streamingsessions.sluice.dev "${name}" not found\n`;
    expect(ended).toEqual({
      exitCode: 1,
      stdout: `session ${id} ended\n`,
      stderr: unknown("gone") + unknown("over"),
    });
    const { status } = await client.done;
    expect(JSON.parse(status)).toMatchObject({ message: "the session was ended by tester: INC 42" });
    expect(await sluice.run(["sessions", "end", id])).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: unknown(id),
    });
    expect(await sluice.run(["sessions", "list"])).toMatchObject({
      exitCode: 0,
      stderr: "No sessions found in default namespace.\n",
    });
  }, 60_000);

  it("prints what a session prints until it ends, or its recording's lines", async () => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    const watches = [[], ["-o", "json"]].map((more) => sluice.start(["sessions", "watch", id, ...more]));
    const seen = watches.map(({ stdout }) => collect(stdout));
    const [problem = () => ""] = watches.map(({ stderr }) => collect(stderr));
    const closed = watches.map((child) => new Promise((resolve) => child.once("close", resolve)));
    const viewers = async () => (await gateway.readMetrics()).get("sluice_session_viewers");
    await eventually("both view it", async () => (await viewers()) === 2);
    // The second would copy into a viewer's clipboard.
    client.socket.send(Buffer.from("\u0000hello\n\u001b]52;c;cm0gLXJm\u0007"));
    await eventually("both have it", () => seen.every((text) => text().includes("hello")));
    client.socket.terminate();
    expect(await Promise.all(closed)).toEqual([0, 0]);
    expect([seen[0]?.(), problem()]).toEqual(["hello\n", `session ${id} is over\n`]);
    const [first = "", second = ""] = seen[1]?.().split("\n") ?? [];
    expect([JSON.parse(first), JSON.parse(second)]).toMatchObject([
      { version: 3 },
      [expect.any(Number), "o", expect.stringMatching(/^hello\n/)],
    ]);
    expect(await sluice.run(["sessions", "watch", id])).toMatchObject({
      exitCode: 1,
      stderr: `Error from server (NotFound): streamingsessions.sluice.dev "${id}" not found\n`,
    });
  }, 60_000);

  it("joins a session with what is piped in, until the session is over", async () => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    const child = sluice.start(["sessions", "join", id, "-A", "-n", "other"]);
    const [seen, problem] = [collect(child.stdout), collect(child.stderr)];
    const closed = new Promise((resolve) => child.once("close", resolve));
    // The second would copy into the joiner's clipboard.
    child.stdin.end("echo hi\n\u001b]52;c;cm0gLXJm\u0007");
    const owner = () => shownTo(client);
    await eventually("both see it", () => seen().includes("echo hi\n") && owner().includes("echo hi\n"));
    client.closeStdin();
    expect(await closed).toBe(0);
    expect([seen(), problem()]).toEqual(["echo hi\n", `session ${id} is over\n`]);
    expect(await sluice.run(["sessions", "join", id])).toMatchObject({
      exitCode: 1,
      stderr: `Error from server (NotFound): streamingsessions.sluice.dev "${id}" not found\n`,
    });
    await client.done;
  }, 60_000);

  it("tells a join that ends before its session, and one that SIGINT ends", async () => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const query = "stdin=true&stdout=true&command=sleep&command=1000";
    const client = new V5Client(gateway.authority, query, "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    const joiners = [1, 2].map(() => sluice.start(["sessions", "join", id]));
    const [problem = () => ""] = joiners.map(({ stderr }) => collect(stderr));
    // It is written to until it has ended.
    joiners[0]?.stdin.on("error", () => {});
    const closed = joiners.map((child) => new Promise((resolve) => child.once("close", resolve)));
    const joined = async () => (await gateway.readMetrics()).get("sluice_session_joiners");
    await eventually("both have joined", async () => (await joined()) === 2);
    joiners[1]?.kill("SIGINT");
    expect(await closed[1]).toBe(130);
    client.closeStdin();
    await eventually("its stdin has ended", () => {
      joiners[0]?.stdin.write("too late\n");
      return problem() !== "";
    });
    expect(await closed[0]).toBe(1);
    expect(problem()).toBe(
      "error: the join ended before its session: the session's command reads no more input\n",
    );
    client.socket.terminate();
    await eventually("no session runs", () => gateway.running.sessions.list().length === 0);
  }, 60_000);

  it.each(["watch", "join"])("a %s says why it is over where the user still sees it", async (action) => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    const terminal = sluice.startInTerminal(["sessions", action, id], { columns: 80, rows: 24 });
    let screen = "";
    terminal.onData((data) => {
      screen += data;
    });
    const exited = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    const onAlternateScreen = "\u001b[?1049hvi";
    await eventually("it is shown", () => {
      client.send(0, onAlternateScreen);
      return screen.includes(onAlternateScreen);
    });
    expect(await sluice.run(["sessions", "end", id])).toMatchObject({ exitCode: 0 });
    expect(await exited).toBe(0);
    const end = screen.slice(screen.lastIndexOf("?1049l"));
    expect(end).toMatch(new RegExp(`\\r\\nsession ${id} is over`));
    await client.done;
  }, 60_000);

  it.each([
    "watch",
    "join",
  ])("a %s sends no escape sequences of its own to a dumb terminal", async (action) => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    const terminal = sluice.startInTerminal(["sessions", action, id], { columns: 80, rows: 24 }, "dumb");
    let screen = "";
    terminal.onData((data) => {
      screen += data;
    });
    const exited = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    await eventually("it is shown", () => {
      client.send(0, "hi");
      return screen.includes("hi");
    });
    expect(await sluice.run(["sessions", "end", id])).toMatchObject({ exitCode: 0 });
    expect(await exited).toBe(0);
    expect(screen).not.toContain("\u001b");
    expect(screen).toMatch(new RegExp(`hi\r\nsession ${id} is over`));
    await client.done;
  }, 60_000);

  it("a watch shows none of its user's keys, and ends by Ctrl-C", async () => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    const terminal = sluice.startInTerminal(["sessions", "watch", id], { columns: 80, rows: 24 }, "dumb");
    let screen = "";
    terminal.onData((data) => {
      screen += data;
    });
    const exited = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    await eventually("it is shown", () => {
      client.send(0, "hi\n");
      return screen.includes("hi");
    });
    terminal.write("rm\r\u0003");
    expect(await exited).toBe(130);
    expect(screen).toMatch(/^(?:hi\r\n)+\r\n$/);
    client.socket.terminate();
    await eventually("no session runs", () => gateway.running.sessions.list().length === 0);
  }, 60_000);

  it("joins from a terminal: Ctrl-C is typed, and the detach keys leave", async () => {
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", headers);
    await client.opened;
    const [{ id = "" } = {}] = gateway.running.sessions.list();
    const terminal = sluice.startInTerminal(["sessions", "join", id], { columns: 80, rows: 24 });
    let screen = "";
    terminal.onData((data) => {
      screen += data;
    });
    const exited = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    await eventually("it has joined", () => screen.includes("Press ctrl-p,ctrl-q to leave it."));
    const title = `\u001b[22;2t\u001b]2;session ${id}, ctrl-p,ctrl-q leaves it\u0007`;
    await eventually("the title says it, too", () => screen.includes(title));
    const joiners = async () => (await gateway.readMetrics()).get("sluice_session_joiners");
    await eventually("it is counted", async () => (await joiners()) === 1);
    terminal.write("a\u0003b");
    const owner = () => shownTo(client);
    await eventually("the session has its keys", () => owner().includes("a\u0003b"));
    terminal.write("\u0010\u0011");
    expect(await exited).toBe(0);
    expect(screen).toMatch(new RegExp(`\\r\\nleft session ${id}\\r\\n$`));
    expect(screen, "the terminal has its own title again").toContain("\u001b[23;2t");
    client.send(0, "goes on\n");
    await eventually("the session goes on", () => owner().includes("goes on\n"));
    await eventually("nobody is joined", async () => (await joiners()) === 0);
    client.socket.terminate();
    await eventually("no session runs", () => gateway.running.sessions.list().length === 0);
  }, 60_000);

  it.each([
    [["sessions"], "list, watch, join or end must be specified"],
    [["sessions", "lst"], 'unknown action "lst"; did you mean "list"?'],
    [["sessions", "watch"], "watch needs the name of one session"],
    [["sessions", "join"], "join needs the name of one session"],
    [["sessions", "watch", "pod/web"], "pod/web is not a session's name"],
    [["sessions", "join", "x", "--watch"], "--watch does not apply to a join"],
    [["sessions", "list", "x"], "list takes no name"],
    [["sessions", "end"], "end needs the name of a session"],
    [["sessions", "watch", "s", "-l", "a=b"], "--selector does not apply to one session's output"],
    [["sessions", "watch", "s", "-w"], "--watch does not apply to one session's output"],
    [["sessions", "watch", "s", "-o", "wide"], "--output does not apply to one session's output"],
    [["sessions", "end", "s", "-o", "json"], "--output does not apply to a session's end"],
    [["sessions", "list", "--reason", "x"], "--reason does not apply to a list"],
  ])("%j is a usage error", async (words, problem) => {
    const { exitCode, stderr } = await sluice.run(words);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(problem)]);
  });
});

describe("sluice sessions list --watch", () => {
  const files = new GatewayFiles();
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
    files.remove();
  });

  it("lists again when its watch is cut, too old, or has a line past its bound, and prints what changed", async () => {
    const [one, two, three] = [1, 2, 3].map((index) => streamingSessionOf(listedSession(index), index));
    let running = [one, two];
    const watches: ServerResponse[] = [];
    const server = createServer((request, response) => {
      const { searchParams } = new URL(request.url ?? "", "http://server");
      response.setHeader("Content-Type", "application/json");
      if (searchParams.has("watch")) {
        watches.push(response);
        response.flushHeaders();
        return;
      }
      response.end(
        JSON.stringify({ kind: "StreamingSessionList", metadata: { resourceVersion: "7" }, items: running }),
      );
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const sluice = new SluiceRunner(files.writeKubeconfig(url));
    const child = sluice.start(["sessions", "list", "-w"]);
    closing.push(() => {
      child.kill("SIGKILL");
      server.closeAllConnections();
      server.close();
      sluice.remove();
    });
    const output = collect(child.stdout);
    const seen = () =>
      output()
        .split("\n")
        .slice(1, -1)
        .map((line) => line.replace(/^(\w+) +\S+(\d) .*$/, "$1 $2"));
    await eventually("the watch began", () => watches.length === 1);
    const documents = sluice.start(["sessions", "list", "-w", "-o", "yaml"]);
    const yaml = collect(documents.stdout);
    await eventually("two documents", () => yaml().split("---\n").length === 3 && watches.length === 2);
    expect(
      yaml()
        .split("---\n")
        .slice(1)
        .map((each) => parse(each)),
    ).toMatchObject([
      { type: "ADDED", object: { metadata: one?.metadata } },
      { type: "ADDED", object: { metadata: two?.metadata } },
    ]);
    documents.kill("SIGKILL");
    await once(documents, "close");
    watches.splice(1);
    watches[0]?.write(`${JSON.stringify({ type: "ADDED", object: three })}\n`);
    await eventually("the third is printed", () => seen().length === 3);
    running = [two, three];
    watches[0]?.destroy();
    await eventually("the watch began again", () => watches.length === 2);
    running = [three];
    const old = { type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } };
    watches[1]?.end(`${JSON.stringify(old)}\n`);
    await eventually("the watch began once more", () => watches.length === 3);
    watches[2]?.write("x".repeat(1024 * 1024 + 1));
    await eventually("the watch began a last time", () => watches.length === 4);
    expect(seen()).toEqual(["ADDED 1", "ADDED 2", "ADDED 3", "DELETED 1", "DELETED 2"]);
    // The server stays away: after five tries the command says so.
    const problem = collect(child.stderr);
    server.close();
    server.closeAllConnections();
    const [exitCode] = (await once(child, "close")) as [number];
    expect([exitCode, problem()]).toEqual([
      1,
      expect.stringMatching(
        /^Unable to connect .+ECONNREFUSED|^Unable to connect to the server: dial tcp .+refused/,
      ),
    ]);
  }, 60_000);
});

describe("sluice sessions, at a server that is scripted", () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  async function serve(answer: (response: ServerResponse) => void): Promise<SluiceRunner> {
    const server = createServer((_request, response) => answer(response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const files = new GatewayFiles();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const sluice = new SluiceRunner(files.writeKubeconfig(url));
    closing.push(() => {
      server.closeAllConnections();
      server.close();
      sluice.remove();
      files.remove();
    });
    return sluice;
  }

  const OVER = '[0,"m","the session is over"]\n';
  it.each<[string, string, (response: ServerResponse) => void, number, RegExp]>([
    ["ends", OVER, (response) => response.end(), 0, /^session s is over\n$/],
    ["ends, while its connection stays", OVER, () => {}, 0, /^session s is over\n$/],
    ["is cut short", "", (response) => response.destroy(), 1, /^(?!.*UpstreamError)error: .+\n$/s],
    [
      "ends without its session",
      "",
      (response) => response.end(),
      1,
      /^error: the view ended before its session\n$/,
    ],
    [
      "is no longer allowed",
      '[0,"m","you may no longer view this session"]\n',
      (response) => response.end(),
      1,
      /^sluice: you may no longer view this session\nerror: the view ended before its session\n$/,
    ],
    [
      "has a line without an end",
      `[0,"o","${"x".repeat(9 * 1024 * 1024)}`,
      () => {},
      1,
      /^error: a line of the server's answer has more than 8388608 bytes\n$/,
    ],
  ])("a view that %s", async (_, last, end, code, problem) => {
    const sluice = await serve((response) => {
      response.write(`{"version":3}\n[0,"o","he"]\n[0,"o","llo\\u001b]0;t\\u0007"]\n${last}`);
      setImmediate(end, response);
    });
    const { exitCode, stdout, stderr } = await sluice.run(["sessions", "watch", "s"]);
    expect([exitCode, stdout.slice(0, 5), stderr]).toEqual([code, "hello", expect.stringMatching(problem)]);
    expect(stdout).not.toContain("\u001b");
  });

  it("JSON holds no control characters of the server", async () => {
    const session = streamingSessionOf({ ...listedSession(1), node: "n\u009b31m\u001b[2J\u007f" }, 1);
    const list = JSON.stringify({ metadata: { resourceVersion: "1" }, items: [session] });
    for (const [words, answer] of [
      [["sessions", "list", "-o", "json"], list],
      [
        ["sessions", "watch", "s", "-o", "json"],
        `{"version":3,"title":"\u009b"}\n[0,"o","\u009d0;t\u009c"]\n${OVER}`,
      ],
    ] as const) {
      const sluice = await serve((response) => response.end(answer));
      const { exitCode, stdout } = await sluice.run(words);
      expect([exitCode, stdout]).toEqual([0, expect.stringContaining("\\u009")]);
      expect(stdout).not.toMatch(/[\u007f-\u009f]/);
      expect(stdout).not.toContain("\u001b");
    }
  });

  it("no list holds control characters of the server", async () => {
    const session = streamingSessionOf({ ...listedSession(1), id: "s\u001b[2J", node: "n\u009b31m" }, 1);
    const list = JSON.stringify({ metadata: { resourceVersion: "1" }, items: [session] });
    for (const format of ["name", "table", "wide", "yaml"]) {
      const sluice = await serve((response) => response.end(list));
      const { exitCode, stdout } = await sluice.run(["sessions", "list", "-o", format]);
      expect([format, exitCode, stdout]).toEqual([format, 0, expect.stringMatching(/\S/)]);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      expect([format, stdout]).toEqual([format, expect.not.stringMatching(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)]);
    }
  });

  it("a terminal is set back only after output", async () => {
    for (const [answer, isReset] of [
      [`{"version":3}\n${OVER}`, false],
      [`{"version":3}\n[0,"o","x"]\n${OVER}`, true],
    ] as const) {
      const sluice = await serve((response) => response.end(answer));
      const terminal = sluice.startInTerminal(["sessions", "watch", "s"], { columns: 80, rows: 24 });
      let seen = "";
      terminal.onData((text) => {
        seen += text;
      });
      await new Promise((resolve) => terminal.onExit(resolve));
      await eventually("its last line came", () => seen.includes("session s is over"));
      expect([seen, seen.includes("\u001b[?1049l")]).toEqual([expect.anything(), isReset]);
    }
  });
});
