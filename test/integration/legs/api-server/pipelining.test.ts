import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../../support/front-door.ts";
import { ask, connectHttp2 } from "../../../support/http2-client.ts";
import { ADMIN_TOKEN, RuntimeNode } from "../../../support/runtime-node.ts";
import { untilStill } from "../../../support/still.ts";

// The bound under test.
const MAX_PIPELINED_REQUESTS = 32;

interface Held {
  readonly url: string | undefined;
  readonly response: ServerResponse;
}

/** A server that holds its responses. */
async function heldUpstream() {
  const held: Held[] = [];
  const upstream = createServer((request, response) => {
    held.push({ url: request.url, response });
    request.resume();
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  onTestFinished(() => {
    upstream.close();
    upstream.closeAllConnections();
  });
  return { held, port: (upstream.address() as AddressInfo).port };
}

/** A gateway that forwards to a held upstream from its API listener and its front door. */
async function start(limits: object = {}) {
  const { held, port } = await heldUpstream();
  const door = await FrontDoor.start(
    [...serviceObjects("app", [{ port }]), ingressObject("all", { defaultBackend: backend("app") })],
    {},
    {
      limits,
      upstreamAPIServer: { url: `http://127.0.0.1:${port}` },
      timeouts: { shutdownGracePeriod: "0s" },
    },
  );
  onTestFinished(() => door.stop());
  return { held, door, apiPort: Number(new URL(door.gateway.apiServerUrl ?? "").port) };
}

const LISTENERS = ["API listener", "front door", "kubelet listener"] as const;

/** One of a gateway's listeners, in front of a held upstream. */
async function startListener(listener: (typeof LISTENERS)[number]) {
  if (listener !== "kubelet listener") {
    const { held, door, apiPort } = await start();
    return { held, port: listener === "front door" ? door.httpPort : apiPort };
  }
  const { held, port } = await heldUpstream();
  const node = await RuntimeNode.start({ listener: { upstream: { url: `http://127.0.0.1:${port}` } } });
  onTestFinished(() => node.stop());
  return { held, port: Number(node.authority.split(":")[1]) };
}

function client(port: number) {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  const seen = { text: "", isClosed: false };
  socket.setEncoding("latin1").on("data", (part: string) => {
    seen.text += part;
  });
  socket.once("close", () => {
    seen.isClosed = true;
  });
  return { socket, seen };
}

const get = (path: string, host = "Host: a"): string => `GET ${path} HTTP/1.1\r\n${host}\r\n\r\n`;

describe.each(LISTENERS)("requests that are pipelined to the %s", (listener) => {
  const host = `Host: a${listener === "kubelet listener" ? `\r\nAuthorization: Bearer ${ADMIN_TOKEN}` : ""}`;
  it("are served one at a time, in order, bodies included", async () => {
    const { held, port } = await startListener(listener);
    const { socket, seen } = client(port);
    const post = `POST /2 HTTP/1.1\r\n${host}\r\nContent-Length: 4\r\n\r\nbody`;
    socket.write(get("/0", host) + get("/1", host) + post + get("/3", host));
    for (let index = 0; index < 4; index++) {
      await expect.poll(() => held.length).toBe(index + 1);
      await untilStill("requests at the upstream", () => held.length);
      const { url, response } = held[index] as Held;
      expect(url).toBe(`/${index}`);
      response.end(`answer ${index}`);
    }
    await expect
      .poll(() => seen.text.match(/answer \d/g))
      .toEqual(["answer 0", "answer 1", "answer 2", "answer 3"]);
    socket.write(get("/4", host));
    await expect.poll(() => held.length).toBe(5);
  });

  it("are so many at most: the connection ends behind the last that is answered", async () => {
    const { held, port } = await startListener(listener);
    const { socket, seen } = client(port);
    socket.write(get("/", host).repeat(2_000));
    const most = MAX_PIPELINED_REQUESTS + 1;
    for (let index = 0; index < most; index++) {
      await expect.poll(() => held.length).toBe(index + 1);
      held[index]?.response.end("answer");
    }
    await expect.poll(() => seen.isClosed).toBe(true);
    expect(held.length).toBe(most);
    expect(seen.text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(most);
    expect(seen.text).toMatch(/Connection: close[\s\S]{0,200}$/i);
  });

  it("have an upgrade behind them carried out after their answers, however large", async () => {
    const { held, port } = await startListener(listener);
    const { socket, seen } = client(port);
    const upgrade = `GET /u HTTP/1.1\r\n${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    socket.write(get("/0", host) + get("/1", host) + upgrade);
    socket.pause();
    const body = "x".repeat(8 * 1024 * 1024);
    for (const index of [0, 1]) {
      await expect.poll(() => held.length).toBe(index + 1);
      held[index]?.response.end(body);
      if (index === 0) socket.resume();
    }
    await expect.poll(() => held[2]?.url, { timeout: 10_000 }).toBe("/u");
    held[2]?.response.end("the last");
    await expect.poll(() => seen.text.includes("the last")).toBe(true);
    const statuses = seen.text.match(/HTTP\/1\.1 \d+/g);
    expect([
      statuses,
      seen.text
        .match(/x+/g)
        ?.filter((run) => run.length > 1)
        .reduce((sum, run) => sum + run.length, 0),
    ]).toEqual([["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 200"], 2 * body.length]);
  });

  it("end with the answer that closes the connection, and the upgrade behind it is not carried out", async () => {
    const { held, port } = await startListener(listener);
    const { socket, seen } = client(port);
    socket.write(`GET /0 HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`);
    socket.write(`GET /u HTTP/1.1\r\n${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await expect.poll(() => held.length).toBe(1);
    held[0]?.response.end("the last");
    await expect.poll(() => seen.isClosed).toBe(true);
    expect([held.length, seen.text.endsWith("the last") || seen.text.includes("the last")]).toEqual([
      1,
      true,
    ]);
  });

  it.each([
    ["no HTTP", "GARBAGE\r\n\r\n", 400],
    ["a method that is not known", `BREW /u HTTP/1.1\r\n${host}\r\n\r\n`, 501],
    ["a chunk without a size", `POST /u HTTP/1.1\r\n${host}\r\nTransfer-Encoding: chunked\r\n\r\nZ`, 400],
  ])("keep their answers when %s follows, which is refused behind them", async (_, faulty, status) => {
    const { held, port } = await startListener(listener);
    const { socket, seen } = client(port);
    socket.write(get("/0", host) + faulty);
    await expect.poll(() => held.length).toBe(1);
    await untilStill("requests at the upstream", () => held.length);
    expect([seen.text, seen.isClosed]).toEqual(["", false]);
    held[0]?.response.end("answer 0");
    await expect.poll(() => seen.isClosed).toBe(true);
    expect(seen.text.match(/HTTP\/1\.1 \d+|answer 0/g)).toEqual([
      "HTTP/1.1 200",
      "answer 0",
      `HTTP/1.1 ${status}`,
    ]);
    expect(held.length).toBe(1);
  });
});

it("pipelined questions to the admin listener are answered in order", async () => {
  const { door } = await start();
  const { socket, seen } = client(Number(new URL(door.gateway.adminUrl).port));
  socket.write(`${get("/metrics")}${get("/livez")}${get("/nowhere")}`);
  await expect
    .poll(() => seen.text.match(/HTTP\/1\.1 \d+/g))
    .toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 404"]);
});

describe("requests in flight at a listener", () => {
  it("are so many and no more at the API listener: 429 with Retry-After; watches do not count", async () => {
    const { held, apiPort: port } = await start({ maxConcurrentRequests: 2 });
    const answers = ["/api/v1/pods?watch=true", "/a", "/b"].map((path) =>
      fetch(`http://127.0.0.1:${port}${path}`),
    );
    await expect.poll(() => held.length).toBe(3);
    // As many may wait as have a seat: one of three is refused at once.
    const further = ["/c", "/d", "/e"].map((path) => fetch(`http://127.0.0.1:${port}${path}`));
    const refused = await Promise.race(further);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await refused.json()).toMatchObject({ reason: "TooManyRequests" });
    for (const { response } of held) response.end();
    await Promise.all(answers.map(async (answer) => (await answer).text()));
    await expect.poll(() => held.length).toBe(5);
    for (const { response } of held) response.end();
    const statuses = (await Promise.all(further)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 200, 429]);
  });

  it("are so many and no more at the front door, over all connections and streams: 503", async () => {
    const { held, door } = await start({ maxConcurrentIngressRequests: 3 });
    const port = door.httpPort;
    const session = await connectHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    const answers = [1, 2, 3].map(() => ask(session, "/", { ":authority": "a" }));
    await expect.poll(() => held.length).toBe(3);
    expect((await ask(session, "/", { ":authority": "a" })).status).toBe(503);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(503);
    for (const { response } of held) response.end();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });
});
