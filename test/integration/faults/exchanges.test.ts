import type { EventEmitter } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Stream } from "node:http2";
import { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { onFault } from "../../../packages/client/src/observability/faults.ts";
import { Http1Downstream } from "../../../src/http/downstream/http1-downstream.ts";
import { Http2Downstream } from "../../../src/http/downstream/http2-downstream.ts";
import { HttpExchange } from "../../../src/http/upstream/http-forwarder.ts";
import { type AnsweredClient, http1Client, http2Client } from "../../support/answered.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import { FaultInjection } from "../../support/fault-injection.ts";
import { type ScriptedApiLeg, startScriptedApiLeg } from "../../support/scripted-api-leg.ts";
import { HOSTS, type ScriptedDoor, startScriptedDoor } from "../../support/scripted-door.ts";

type Version = keyof typeof HOSTS | "API server";
type Client = "h1" | "h2";

/** The API leg answers the root itself. */
const PATH = "/version";

const rows: string[][] = [];
const faults: string[] = [];
let injection: FaultInjection;
let stopObserving: () => void;
let door: ScriptedDoor;
let leg: ScriptedApiLeg;
let legClients: Record<Client, AnsweredClient>;

beforeAll(async () => {
  injection = new FaultInjection();
  stopObserving = onFault((where) => void faults.push(where));
  door = await startScriptedDoor();
  leg = await startScriptedApiLeg();
  const { h1, h2 } = leg.authorities;
  legClients = { h1: http1Client(Number(h1.split(":")[1])), h2: http2Client(`https://${h2}`) };
  for (const one of [...Object.values(door.backends), leg.peer]) {
    const interims = [{ status: 103, lines: [] }];
    const trailers = [["x-last", "1"]] as const;
    one.answer = { interims, status: 200, lines: [], body: "body", framing: "chunked", trailers };
  }
});
afterAll(async () => {
  injection.restore();
  stopObserving();
  legClients.h2.close();
  await leg.close();
  await door.stop();
});

/** At its 'close' a stream has no session any more. */
const backendStreams = new WeakSet<EventEmitter>();
const http2PortOf = (stream: Http2Stream): number | undefined => stream.session?.socket?.remotePort;

/** Emitters of the gateway alone: this process has the clients and the backends, too. */
const EMITTERS: Readonly<Record<string, (emitter: EventEmitter) => boolean>> = {
  "backend's socket": (emitter) =>
    emitter instanceof Socket &&
    [door.backends["http/1.1"].port, leg.peer.port].includes(emitter.remotePort ?? 0),
  "backend's stream": (emitter) => {
    if (emitter.constructor.name !== "ClientHttp2Stream") return false;
    if (http2PortOf(emitter as Http2Stream) === door.backends.h2c.port) backendStreams.add(emitter);
    return backendStreams.has(emitter);
  },
  "client's stream": (emitter) => emitter.constructor.name === "ServerHttp2Stream",
  "client's request": (emitter) => emitter instanceof IncomingMessage,
  "client's response": (emitter) => emitter instanceof ServerResponse,
};

/** Which events each emitter has in an exchange of these two versions. */
const EVENTS: readonly (readonly [Version, Client, emitter: string, event: string])[] = [
  ...(["h1", "h2"] as const).flatMap((client) => [
    ["http/1.1", client, "backend's socket", "data"] as const,
    ["API server", client, "backend's socket", "data"] as const,
    ...["response", "data", "end", "trailers", "close"].map(
      (event) => ["h2c", client, "backend's stream", event] as const,
    ),
  ]),
  ...(["http/1.1", "h2c", "API server"] as const).flatMap((version) => [
    [version, "h2", "client's stream", "wantTrailers"] as const,
    [version, "h2", "client's stream", "close"] as const,
    [version, "h1", "client's response", "close"] as const,
  ]),
];

const METHODS = ["send", "onInterim", "onHead", "onRead"] as const;

async function endedByFault(version: Version, client: Client, isThrown: () => boolean): Promise<string> {
  const [host, clients] = version === "API server" ? ["gateway", legClients] : [HOSTS[version], door.clients];
  faults.length = 0;
  const { status, isWhole } = await clients[client].get(host, PATH);
  await expect.poll(() => faults.length).toBeGreaterThan(0);
  expect(isThrown()).toBe(true);
  expect(faults.filter((where) => where === "process")).toEqual([]);
  for (const next of ["h1", "h2"] as const) {
    expect(await clients[next].get(host, PATH)).toMatchObject({ status: 200, body: "body", isWhole: true });
  }
  if (status === 0) return "no answer: cut";
  return `${status}, ${isWhole ? "whole" : "cut"}`;
}

describe("an exception in an exchange ends that exchange alone", () => {
  it.each(EVENTS)("%s backend, %s client, %s '%s'", async (version, client, emitter, event) => {
    const isMeant = EMITTERS[emitter] as (emitter: EventEmitter) => boolean;
    injection.arm((source, name) => isMeant(source) && name === event);
    const seen = await endedByFault(version, client, () => !injection.isArmed);
    rows.push([version, client, `${emitter} \`${event}\``, seen]);
  });

  it.each(
    (["http/1.1", "API server"] as const).flatMap((version) =>
      (["h1", "h2"] as const).flatMap((client) =>
        METHODS.map((method) => [version, client, method] as const),
      ),
    ),
  )("%s backend, %s client, forwarder's %s", async (version, client, method) => {
    const spy = vi.spyOn(HttpExchange.prototype, method).mockImplementationOnce(() => {
      throw new Error(`injected into ${method}`);
    });
    const seen = await endedByFault(version, client, () => spy.mock.calls.length > 0);
    spy.mockRestore();
    rows.push([version, client, `forwarder's \`${method}\``, seen]);
  });

  it.each([
    ["h1", Http1Downstream],
    ["h2", Http2Downstream],
  ] as const)("%s client, before its request has an owner", async (client, downstream) => {
    const contain = vi.spyOn(downstream.prototype, "contain").mockImplementationOnce(() => {
      throw new Error("injected into the listener");
    });
    const seen = await endedByFault("http/1.1", client, () => contain.mock.calls.length > 0);
    contain.mockRestore();
    rows.push(["http/1.1", client, "listener", seen]);
  });

  it("the table is documented", async () => {
    const head = ["backend", "client", "an exception in", "the client saw"];
    const page = `# Injected exceptions: HTTP exchanges

An exception ends its own exchange: with 500 before the response, by cutting it afterwards. Written by
\`npx vitest run test/integration/faults --update\`.

${evidenceTable(head, rows, [2, 0, 1])}
`;
    await expect(page).toMatchFileSnapshot("../../../docs/evidence/faults-of-exchanges.md");
  });
});
