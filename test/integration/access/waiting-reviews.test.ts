import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AccessGateway, EXEC_PATH } from "../../support/access-gateway.ts";
import { eventually } from "../../support/eventually.ts";

/** The bounds on which the clients wait. */
const MAX_REVIEWS_IN_FLIGHT = 32;
const MAX_ACCESS_REVIEWS_IN_FLIGHT = 64;

interface Spec {
  readonly token?: string;
  readonly resourceAttributes?: { readonly namespace: string };
}

let reviews: Server;
let gateway: AccessGateway;
/** The reviewed names, and the answer for each. */
let asked: { readonly about: string; readonly answer: () => void }[] = [];

beforeEach(async () => {
  asked = [];
  reviews = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (chunks.length === 0) return;
    const { spec } = JSON.parse(Buffer.concat(chunks).toString()) as { spec: Spec };
    const status = { authenticated: false, allowed: false };
    const about = spec.token ?? spec.resourceAttributes?.namespace ?? "";
    asked.push({ about, answer: () => response.end(JSON.stringify({ status })) });
  });
  await new Promise<void>((resolve) => reviews.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  await gateway.stop();
  reviews.closeAllConnections();
  await new Promise((resolve) => reviews.close(resolve));
});

function start(places: number, configuration: (url: string) => object): Promise<AccessGateway> {
  const url = `http://127.0.0.1:${(reviews.address() as AddressInfo).port}/`;
  return AccessGateway.start((folder) => {
    writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
    return {
      limits: { maxConnectionsPerAddress: places + 1 },
      audit: { log: { path: "audit.log" } },
      ...configuration(url),
    };
  });
}

const UPGRADE = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}\r\n`;

/** Sends a request on its own connection. */
function send(target: string, token: string, more = ""): TLSSocket {
  const [host, port] = gateway.authority.split(":");
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {}).resume();
  socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`);
  return socket;
}

interface AuditEvent {
  readonly stage: string;
  readonly responseStatus?: { readonly code?: number };
}

/** The codes with which the audit log ends requests of this target. */
function auditedEnds(target: string): (number | undefined)[] {
  const file = path.join(gateway.folder, "audit.log");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines
    .filter((line) => line.includes(JSON.stringify(target)))
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter(({ stage }) => stage === "ResponseComplete")
    .map(({ responseStatus }) => responseStatus?.code);
}

const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
const execIn = (namespace: string): string => EXEC_PATH.replace("/default/", `/${namespace}/`);
const KINDS = {
  "TokenReview of a list": {
    places: MAX_REVIEWS_IN_FLIGHT,
    targetOf: (name: string) => `${podsOf("default")}?of=${name}`,
    tokenOf: (name: string) => name,
    // Its user is unknown, so it is not audited.
    ends: [],
  },
  "TokenReview of an exec": {
    places: MAX_REVIEWS_IN_FLIGHT,
    targetOf: (name: string) => `${EXEC_PATH}&of=${name}`,
    tokenOf: (name: string) => name,
    ends: [499],
  },
  "SubjectAccessReview of a list": {
    places: MAX_ACCESS_REVIEWS_IN_FLIGHT,
    targetOf: podsOf,
    tokenOf: () => "t",
    ends: [499],
  },
  "SubjectAccessReview of an exec": {
    places: MAX_ACCESS_REVIEWS_IN_FLIGHT,
    targetOf: execIn,
    tokenOf: () => "t",
    ends: [499],
  },
};

describe("a client that leaves while it waits for its", () => {
  it.each(Object.entries(KINDS))("%s leaves the queue, and audit says so", async (kind, {
    places,
    targetOf,
    tokenOf,
    ends,
  }) => {
    const sendOne = (name: string): TLSSocket =>
      send(targetOf(name), tokenOf(name), kind.endsWith("exec") ? UPGRADE : "");
    gateway = await start(places, (url) =>
      kind.startsWith("TokenReview")
        ? { authentication: { tokenReview: { url, timeout: "30s" } } }
        : {
            authentication: { tokenAuthFile: "tokens.csv" },
            authorization: { mode: ["Webhook"], webhook: { url, timeout: "30s" } },
          },
    );
    for (let index = 0; index < places; index++) sendOne(`first-${index}`);
    await eventually("the reviews", () => asked.length === places);
    // The last connection that its address may have: the gateway takes another once this one has left.
    const leaving = sendOne("leaves");
    await once(leaving, "secureConnect");
    await gateway.metrics();
    leaving.destroy();
    const reconnects = async (): Promise<boolean> => {
      const next = sendOne("stays");
      await Promise.race([once(next, "secureConnect"), once(next, "close")]);
      return next.authorized || next.getProtocol() !== null;
    };
    // Well before the wait would end by itself.
    await eventually("another connection", reconnects, { timeoutMs: 10_000 });
    await eventually("its audit", () => auditedEnds(targetOf("leaves")).length >= ends.length);
    for (const { answer } of asked.slice(0, places)) answer();
    await eventually("the one that stays", () => asked.some(({ about }) => about === "stays"));
    expect(asked.map(({ about }) => about)).not.toContain("leaves");
    expect(auditedEnds(targetOf("leaves"))).toEqual(ends);
  });
});
