import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../support/front-door.ts";
import { describeReal, programOf } from "../support/real-parts.ts";

const HOST = "app.example.com";

/** A page, and behind it a WebSocket that sends back what it gets and closes when it is told to. */
async function startApp(): Promise<{ server: Server; upgrades: string[] }> {
  const upgrades: string[] = [];
  const server = createServer((_request, response) => {
    response.writeHead(200, { "Content-Type": "text/html" });
    response.end("<!doctype html><title>app</title>");
  });
  const sockets = new WebSocketServer({
    server,
    handleProtocols: (protocols) => (protocols.has("chat.v2") ? "chat.v2" : false),
  });
  sockets.on("connection", (socket: WebSocket, request) => {
    upgrades.push(`HTTP/${request.httpVersion} ${request.url} ${request.headers.host}`);
    socket.on("message", (data, isBinary) => {
      if (!isBinary && String(data) === "bye") socket.close(4001, "as you wish");
      else socket.send(data, { binary: isBinary });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, upgrades };
}

/** Chromium opens a WebSocket on the HTTP/2 connection that it has, if the server says that it may (RFC 8441). */
describeReal("chromium", "a browser through the front door", () => {
  let door: FrontDoor;
  let app: Awaited<ReturnType<typeof startApp>>;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    app = await startApp();
    const { port } = app.server.address() as AddressInfo;
    door = await FrontDoor.start([
      ...serviceObjects("app", [{ port }]),
      ingressObject("app", { defaultBackend: backend("app") }),
    ]);
    browser = await chromium.launch({
      executablePath: programOf("chromium"),
      // As root in a container there is no sandbox to be had.
      args: ["--no-sandbox", "--disable-dev-shm-usage", `--host-resolver-rules=MAP ${HOST} 127.0.0.1`],
    });
    page = await browser.newPage({ ignoreHTTPSErrors: true });
    await page.goto(`https://${HOST}:${door.httpsPort}/`);
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    await door?.stop();
    app?.server.closeAllConnections();
    app?.server.close();
  });

  const answered = async (protocol: string, code: number): Promise<number> =>
    (await door.readMetrics()).get(`sluice_ingress_requests_total{protocol="${protocol}",code="${code}"}`) ??
    0;

  it("loads its page over HTTP/2", async () => {
    const protocol = await page.evaluate('performance.getEntriesByType("navigation")[0].nextHopProtocol');
    expect(protocol).toBe("h2");
  });

  it("talks over a WebSocket on a stream of the same connection, with texts, bytes and a last word", async () => {
    const said = await page.evaluate(`new Promise((resolve, reject) => {
      const said = [];
      const socket = new WebSocket("wss://" + location.host + "/chat?room=1", ["chat.v1", "chat.v2"]);
      socket.binaryType = "arraybuffer";
      socket.onerror = () => reject(new Error("the WebSocket failed"));
      socket.onopen = () => {
        said.push("open " + socket.protocol);
        socket.send("hello");
        socket.send(new Uint8Array(1024 * 1024).fill(7));
        socket.send("bye");
      };
      socket.onmessage = ({ data }) => said.push(typeof data === "string" ? data : "bytes " + data.byteLength);
      socket.onclose = ({ code, reason, wasClean }) => {
        said.push("closed " + code + " " + reason + " " + wasClean);
        resolve(said);
      };
    })`);
    expect(said).toEqual(["open chat.v2", "hello", "bytes 1048576", "closed 4001 as you wish true"]);
    expect(app.upgrades).toEqual([`HTTP/1.1 /chat?room=1 ${HOST}:${door.httpsPort}`]);
    expect(await answered("http/1.1", 101)).toBe(0);
  });

  it("has many WebSockets at a time, each on a stream", async () => {
    const before = await answered("h2", 200);
    const answers = await page.evaluate(`Promise.all(Array.from({ length: 20 }, (_, index) =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket("wss://" + location.host + "/chat");
        socket.onerror = () => reject(new Error("the WebSocket failed"));
        socket.onopen = () => socket.send("number " + index);
        socket.onmessage = ({ data }) => { resolve(data); socket.close(); };
      })))`);
    expect(answers).toEqual(Array.from({ length: 20 }, (_, index) => `number ${index}`));
    expect(await answered("http/1.1", 101)).toBe(0);
    expect((await answered("h2", 200)) - before).toBe(20);
  });
});
