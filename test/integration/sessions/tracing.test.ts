import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";

interface Received {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
}

/** An OTLP/HTTP receiver: what the real exporter sends, decoded. */
class Collector {
  readonly spans: Received[] = [];
  readonly bodies: string[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Collector> {
    const server = createServer((incoming, response) => {
      const parts: Buffer[] = [];
      incoming.on("data", (part: Buffer) => parts.push(part));
      incoming.on("end", () => {
        const text = Buffer.concat(parts).toString();
        const { resourceSpans } = JSON.parse(text) as {
          resourceSpans: { scopeSpans: { spans: Received[] }[] }[];
        };
        collector.bodies.push(text);
        collector.spans.push(
          ...resourceSpans.flatMap((each) => each.scopeSpans.flatMap(({ spans }) => spans)),
        );
        response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
      });
    }).listen(0, "127.0.0.1");
    const collector = new Collector(server);
    await once(server, "listening");
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  of(traceId: string): Received[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function attributesOf({ attributes }: Received): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

describe("a traced session", () => {
  let collector: Collector;
  let gateway: TestGateway;
  beforeAll(async () => {
    collector = await Collector.start();
    gateway = await startTestGateway({
      scheme: "http",
      fakeNodes: [{}],
      configuration: { tracing: { endpoint: collector.url, samplePercent: 100 } },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    collector.stop();
  });

  it("is one trace, within its client's, with a span for each step and none for a chunk", async () => {
    const query = "container=main&command=echo&command=s3cret-argument&stdout=true&stderr=true";
    const socket = new WebSocket(
      `ws://${gateway.authority}/api/v1/namespaces/default/pods/web/exec?${query}`,
      ["v5.channel.k8s.io"],
      { headers: { Authorization: `Bearer ${gateway.token}`, traceparent: PARENT, tracestate: "vendor=1" } },
    );
    await once(socket, "close");
    const prometheus =
      "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    const scrape = async (accept: string): Promise<string> => {
      const response = await fetch(new URL("/metrics", gateway.adminUrl), { headers: { accept } });
      return `${response.headers.get("content-type")}\n${await response.text()}`;
    };
    await eventually("exemplars of the handshake and the session", async () => {
      const text = await scrape(prometheus);
      return ["handshake", "session"].every((name) =>
        new RegExp(`^sluice_streaming_${name}_duration.* # \\{trace_id="${TRACE}"\\} `, "m").test(text),
      );
    });
    expect(await scrape(prometheus)).toMatch(
      /^application\/openmetrics-text; version=1\.0\.0; [\s\S]*\n# EOF\n$/,
    );
    for (const accept of ["*/*", "text/plain", "application/openmetrics-text;q=0, text/plain"]) {
      const text = await scrape(accept);
      expect(text).toMatch(/^text\/plain; version=0\.0\.4; /);
      expect(text).not.toMatch(/trace_id|# EOF/);
    }
    await gateway.shutDown();
    const spans = collector.of(TRACE);
    expect(spans.map(({ name }) => name).toSorted()).toEqual(
      [
        "authenticate",
        "authorize",
        "authorize",
        "dial",
        "exec",
        "locate",
        "policy",
        "session",
        "upgrade",
      ].toSorted(),
    );
    const server = spans.find(({ name }) => name === "exec");
    expect(server?.parentSpanId).toBe("00f067aa0ba902b7");
    for (const span of spans) if (span !== server) expect(span.parentSpanId).toBe(server?.spanId);
    expect(attributesOf(server as Received)).toMatchObject({
      "http.request.method": "GET",
      "http.response.status_code": 101,
      "url.path": "/api/v1/namespaces/default/pods/web/exec",
      "k8s.pod.name": "web",
      "k8s.namespace.name": "default",
      "sluice.plan": "translate",
    });
    const session = spans.find(({ name }) => name === "session");
    expect(attributesOf(session as Received)).toMatchObject({ "sluice.end_cause": "completed" });
    const sent = collector.bodies.join("");
    expect(sent).not.toContain("s3cret-argument");
    expect(sent).not.toContain(gateway.token);
    expect(gateway.logLines.join("")).toContain(`"traceId":"${TRACE}"`);
  });
});

it("records refusals with their status, and hands the trace on to backends of the front door", async () => {
  const collector = await Collector.start();
  const webSockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(webSockets, "listening");
  const upgraded = once(webSockets, "connection");
  const door = await FrontDoor.start(
    [],
    {},
    { tracing: { endpoint: collector.url, samplePercent: 100, serviceName: "door" } },
  );
  const pod = await door.addPod("app");
  const ruleOf = (host: string, service: string) => ({
    host,
    http: { paths: [{ path: "/", pathType: "Prefix", backend: backend(service) }] },
  });
  door.write([
    ...serviceObjects("app", [pod]),
    ...serviceObjects("chat", [{ port: (webSockets.address() as AddressInfo).port }]),
    ingressObject("shop", { rules: [ruleOf("shop.example", "app"), ruleOf("chat.example", "chat")] }),
  ]);
  await door.serves(1);
  const ask = async (host: string, headers: object = {}) => {
    const asked = request({
      host: "127.0.0.1",
      port: door.httpPort,
      agent: false,
      headers: { Host: host, ...headers },
    });
    asked.end();
    const [response] = (await once(asked, "response")) as [import("node:http").IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    return Buffer.concat(parts).toString();
  };
  const echoed = JSON.parse(await ask("shop.example", { traceparent: PARENT, tracestate: "vendor=1" })) as {
    headers: Record<string, string[]>;
  };
  await ask("nowhere.example", { traceparent: "00-zz" });
  const socket = new WebSocket(`ws://127.0.0.1:${door.httpPort}/`, {
    headers: { Host: "chat.example", traceparent: PARENT },
  });
  await once(socket, "open");
  const [, upgradeRequest] = (await upgraded) as [unknown, import("node:http").IncomingMessage];
  socket.close();
  await once(socket, "close");
  await eventually(
    "four exchanges in metrics",
    async () => ((await door.readMetrics()).get('sluice_trace_spans_total{result="ended"}') ?? 0) >= 6,
  );
  await door.stop();
  const shop = collector.spans.find((span) => attributesOf(span)["k8s.service.name"] === "app");
  expect(echoed.headers["Traceparent"]).toEqual([`00-${TRACE}-${shop?.spanId}-01`]);
  expect(echoed.headers["Tracestate"]).toEqual(["vendor=1"]);
  const refused = collector.spans.find((span) => attributesOf(span)["http.response.status_code"] === 404);
  expect(refused?.traceId).not.toBe(TRACE);
  const chat = collector.spans.find((span) => attributesOf(span)["k8s.service.name"] === "chat");
  expect(upgradeRequest.headers["traceparent"]).toBe(`00-${TRACE}-${chat?.spanId}-01`);
  const steps = collector.spans
    .filter(({ parentSpanId }) => parentSpanId === chat?.spanId)
    .map(({ name }) => name);
  expect(steps.toSorted()).toEqual(["dial", "session", "upgrade"]);
  webSockets.close();
  collector.stop();
});

it("does not let clients choose what is recorded, and holds up nothing when the collector is gone", async () => {
  const collector = await Collector.start();
  const { url } = collector;
  collector.stop();
  const door = await FrontDoor.start(
    [ingressObject("all", { defaultBackend: backend("none") })],
    {},
    { tracing: { endpoint: url, samplePercent: 0, timeout: "100ms" } },
  );
  const response = await fetch(`http://127.0.0.1:${door.httpPort}/`, { headers: { traceparent: PARENT } });
  expect(response.status).toBe(503);
  expect((await door.readMetrics()).get('sluice_trace_spans_total{result="ended"}') ?? 0).toBe(0);
  await door.stop();
});
