import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestAgent } from "../../../support/test-agent.ts";

const POD = "/api/v1/namespaces/default/pods/web";
const EXEC = `${POD}/exec?command=true&stdout=true`;
const MINUTE = 60_000;

const SPDY_101 = [
  "HTTP/1.1 101 Switching Protocols",
  "Connection: Upgrade",
  "Upgrade: SPDY/3.1",
  "X-Stream-Protocol-Version: v4.channel.k8s.io",
  "",
  "",
].join("\r\n");

/** SPDY/3.1 draft section 2.6.5. */
const PING = Buffer.from("800300060000000400000001", "hex");

let server: Server;
let agent: TestAgent;
/** `websocket exec`, `SPDY/3.1 exec`: what was asked for, in order. */
let asked: string[];
let webSocketAnswer: string | "reset";
let spdyAnswer: string;
let nowMs: number;

beforeEach(async () => {
  [asked, webSocketAnswer, spdyAnswer, nowMs] = [[], bare(403, "Forbidden"), SPDY_101, 0];
  server = createServer();
  server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
    const { upgrade = "" } = request.headers;
    asked.push(`${upgrade} ${/pods\/web\/(\w+)/.exec(request.url ?? "")?.[1]}`);
    socket.on("error", () => {});
    const answer = upgrade === "websocket" ? webSocketAnswer : spdyAnswer;
    if (answer === "reset") socket.resetAndDestroy();
    else if (answer.startsWith("HTTP/1.1 101")) socket.write(answer);
    else socket.end(answer);
    socket.on("data", (part) => socket.write(part));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  agent = await TestAgent.start({ server: url, memoryClock: { now: () => nowMs } });
});
afterEach(async () => {
  await agent.stop();
  server.closeAllConnections();
  server.close();
});

describe("a SPDY client whose API server cannot take its bridge's WebSocket", () => {
  it.each([
    ["403 of a runtime that knows no v5", bare(403, "Forbidden")],
    ["400", bare(400, "Bad Request", 'query parameter "port" is required')],
    ["404 of a router", bare(404, "Not Found", "404 page not found\n")],
    ["426", bare(426, "Upgrade Required")],
    ["501", bare(501, "Not Implemented")],
    ["200", bare(200, "OK")],
    ["a redirect", "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"],
    [
      "101 without an accept value",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
    [
      "101 to something else",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    ],
  ])("goes on in SPDY after %s, and the next one at once", async (_what, answer) => {
    webSocketAnswer = answer;
    const first = await agent.upgradeToSpdy(EXEC);
    expect(first.headers).toMatchObject({
      upgrade: "SPDY/3.1",
      "x-stream-protocol-version": "v4.channel.k8s.io",
    });
    first.socket?.write(PING);
    expect((await once(first.socket as Socket, "data"))[0]).toEqual(PING);
    first.socket?.destroy();
    expect(asked).toEqual(["websocket exec", "SPDY/3.1 exec"]);
    expect(agent.told.join("\n")).toContain("exec fallback: ");
    expect(await agent.metric("sluice_streaming_requests_total")).toEqual([
      expect.stringMatching(/plan="pass-through".*code="101".* 1$/),
    ]);

    (await agent.upgradeToSpdy(`${POD}/attach?stdout=true`)).socket?.destroy();
    expect(asked.slice(2)).toEqual(["SPDY/3.1 attach"]);
  });

  it("is remembered for a minute, and for port-forward apart from commands", async () => {
    (await agent.upgradeToSpdy(EXEC)).socket?.destroy();
    (await agent.upgradeToSpdy(`${POD}/portforward`, ["portforward.k8s.io"])).socket?.destroy();
    expect(asked).toEqual([
      "websocket exec",
      "SPDY/3.1 exec",
      "websocket portforward",
      "SPDY/3.1 portforward",
    ]);
    nowMs = MINUTE - 1;
    (await agent.upgradeToSpdy(EXEC)).socket?.destroy();
    expect(asked.slice(4)).toEqual(["SPDY/3.1 exec"]);
    nowMs = MINUTE;
    (await agent.upgradeToSpdy(EXEC)).socket?.destroy();
    expect(asked.slice(5)).toEqual(["websocket exec", "SPDY/3.1 exec"]);
  });

  it.each([
    ["a permission", status(403, "Forbidden", 'pods "web" is forbidden')],
    ["an overload", status(503, "ServiceUnavailable", "try again")],
    ["a pod that is not there", status(404, "NotFound", 'pods "web" not found')],
  ])("goes on in SPDY after %s, which says nothing of later sessions", async (_what, answer) => {
    webSocketAnswer = answer;
    for (let session = 0; session < 2; session++) (await agent.upgradeToSpdy(EXEC)).socket?.destroy();
    expect(asked).toEqual(["websocket exec", "SPDY/3.1 exec", "websocket exec", "SPDY/3.1 exec"]);
  });

  it("is not asked again where no answer came", async () => {
    webSocketAnswer = "reset";
    const refused = await agent.upgradeToSpdy(EXEC);
    expect(refused.status).toBe(502);
    expect(JSON.parse(refused.body).message).toMatch(
      /^error trying to reach the API server: .*connection reset by peer/,
    );
    expect(asked).toEqual(["websocket exec"]);
  });
});

describe("where both are refused the client hears", () => {
  it("the second, as from client-go", async () => {
    spdyAnswer = status(404, "NotFound", 'pods "web" not found');
    for (const answer of [bare(403, "Forbidden"), status(400, "BadRequest", "not this one")]) {
      webSocketAnswer = answer;
      const refused = await agent.upgradeToSpdy(EXEC);
      expect(refused).toMatchObject({
        status: 404,
        body: expect.stringContaining('pods \\"web\\" not found'),
      });
    }
  });

  it("the first where a hop refuses SPDY in words of its own", async () => {
    webSocketAnswer = status(404, "NotFound", 'pods "web" not found');
    spdyAnswer = bare(403, "Forbidden", `<html>${"x".repeat(50_000)}</html>`);
    const refused = await agent.upgradeToSpdy(EXEC);
    expect(refused.status).toBe(404);
    expect(JSON.parse(refused.body)).toMatchObject({ kind: "Status", message: 'pods "web" not found' });
    expect(await agent.metric("sluice_streaming_requests_total")).toEqual([
      expect.stringMatching(/plan="bridge".*code="404".* 1$/),
    ]);
  });

  it("no more than a kibibyte of a page of HTML, as a Status", async () => {
    webSocketAnswer = bare(502, "Bad Gateway", `<html>${"x".repeat(50_000)}</html>`);
    spdyAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    const refused = await agent.upgradeToSpdy(EXEC);
    expect(refused.status).toBe(502);
    expect(refused.body.length).toBeLessThanOrEqual(1_024);
    expect(JSON.parse(refused.body)).toMatchObject({ kind: "Status", code: 502 });
  });
});

it("a WebSocket client falls back by itself: its refusal is passed on", async () => {
  const socket = agent.webSocket(EXEC, "v5.channel.k8s.io");
  const [error] = await once(socket, "error");
  expect(String(error)).toContain("403");
  expect(asked).toEqual(["websocket exec"]);
});

function bare(code: number, phrase: string, body = ""): string {
  return `HTTP/1.1 ${code} ${phrase}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function status(code: number, reason: string, message: string): string {
  const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
  return bare(code, reason, JSON.stringify(body));
}
