import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { HeldBackend, WHOLE_BODY } from "../../support/held-backend.ts";
import { readToEnd, untilRefused } from "../../support/http/loopback.ts";
import { http1Requests, http2Requests } from "../../support/requests-in-flight.ts";

const REQUESTS = 24;

async function start(gracePeriod: string): Promise<{ door: FrontDoor; pods: HeldBackend }> {
  const pods = new HeldBackend();
  onTestFinished(() => pods.close());
  const door = await FrontDoor.start(
    [
      ...serviceObjects("app", [{ port: await pods.listen() }]),
      ingressObject("all", { defaultBackend: backend("app") }),
    ],
    {},
    { timeouts: { shutdownGracePeriod: gracePeriod } },
  );
  onTestFinished(() => door.stop());
  return { door, pods };
}

it("requests in flight are answered whole within the grace period, behind a GOAWAY on HTTP/2", async () => {
  const { door, pods } = await start("20s");
  const { httpPort } = door;
  const http1 = http1Requests(httpPort, REQUESTS);
  const http2 = await http2Requests(httpPort, REQUESTS);
  const goaways = http2.sessions.map((session) => once(session, "goaway"));
  await expect.poll(() => pods.held.length).toBe(2 * REQUESTS);
  const stopped = door.gateway.shutDown();
  await Promise.all(goaways);
  await untilRefused(httpPort);
  expect(pods.held.length).toBe(2 * REQUESTS);
  pods.release();
  const outcomes = await Promise.all([...http1, ...http2.outcomes]);
  expect(outcomes).toEqual(Array(2 * REQUESTS).fill([200, WHOLE_BODY]));
  await stopped;
});

it("a kept connection takes no further request: the one that is answered last is closed behind it", async () => {
  const { door, pods } = await start("20s");
  const client = connect(door.httpPort, "127.0.0.1").on("error", () => {});
  client.write("GET /begun HTTP/1.1\r\nHost: a\r\n\r\n");
  const [first] = (await once(client, "data")) as [Buffer];
  const stopped = door.gateway.shutDown();
  let received = first.toString();
  client.on("data", (part: Buffer) => {
    received += part.toString();
  });
  pods.release();
  await once(client, "close");
  expect(received).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n0\r\n\r\n$/);
  await stopped;
});

it("requests are cut when the grace period is over, and counted in the log", async () => {
  const { door, pods } = await start("300ms");
  const http1 = http1Requests(door.httpPort, 4);
  const http2 = await http2Requests(door.httpPort, 4);
  await expect.poll(() => pods.held.length).toBe(8);
  await door.gateway.shutDown();
  for (const outcome of await Promise.all([...http1, ...http2.outcomes])) {
    expect(outcome).not.toEqual([200, WHOLE_BODY]);
  }
  const cut = door.logged.find((line) => line.includes("cutting the remaining requests"));
  expect(JSON.parse(cut ?? "{}")).toMatchObject({ requests: 8 });
});

describe("connections without a request", () => {
  const requestOn = async (client: Socket, pods: HeldBackend): Promise<string> => {
    const answered = readToEnd(client);
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => pods.held.length).toBe(1);
    pods.release();
    return (await answered).text;
  };

  it.each(["plain", "secure"])("are answered once when they had just been opened: %s", async (kind) => {
    const { door, pods } = await start("20s");
    const port = kind === "plain" ? door.httpPort : door.httpsPort;
    const options = { port, host: "127.0.0.1", rejectUnauthorized: false };
    const client = kind === "plain" ? connect(options) : connectTls(options);
    client.on("error", () => {});
    await once(client, kind === "plain" ? "connect" : "secureConnect");
    const stopped = door.gateway.shutDown();
    await untilRefused(port);
    expect(await requestOn(client, pods)).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\nconnection: close\r\n/i);
    await stopped;
  });

  it("are answered when they begin to speak HTTP/2", async () => {
    const { door, pods } = await start("20s");
    const early = connect(door.httpsPort, "127.0.0.1");
    await once(early, "connect");
    const stopped = door.gateway.shutDown();
    await untilRefused(door.httpsPort);
    const client = connectHttp2("https://127.0.0.1", {
      createConnection: () => connectTls({ socket: early, ALPNProtocols: ["h2"], rejectUnauthorized: false }),
    });
    await once(client, "remoteSettings");
    const request = client.request({ ":path": "/" });
    const [head] = await Promise.all([
      once(request, "response"),
      expect
        .poll(() => pods.held.length)
        .toBe(1)
        .then(() => pods.release()),
    ]);
    expect(head[0]).toMatchObject({ ":status": 200 });
    expect(await text(request)).toBe(WHOLE_BODY);
    await stopped;
  });

  it("are closed at once when they were kept", async () => {
    const { door, pods } = await start("20s");
    const client = connect(door.httpPort, "127.0.0.1").on("error", () => {});
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => pods.held.length).toBe(1);
    pods.release();
    await once(client, "data");
    const closed = readToEnd(client);
    await door.gateway.shutDown();
    expect((await closed).isClean).toBe(true);
  });
});
