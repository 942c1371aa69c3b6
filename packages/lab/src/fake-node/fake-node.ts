// packages/lab/fake-node: a node that answers as kubelet and runtime do, with real processes

import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket, type TlsOptions } from "node:tls";
import { createHttp1Server } from "@sluice/client/internal/http/downstream/http1-server";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { FakePod } from "./fake-pod.ts";
import { defaultFakeNodeLimits, type FakeNodeLimits, HTTP_BOUNDS } from "./limits.ts";
import { type Refusal, textRefusal } from "./refusal.ts";
import { RunningPod } from "./running-pod.ts";
import { decide, type ServingNode } from "./serve-request.ts";

/** A kubelet declares this feature if it accepts WebSocket v5 and the tunnel itself (KEP-4006). */
const EXTEND_WEBSOCKETS = "ExtendWebSocketsToKubelet";
const MAX_TICK_MS = 1_000;

export interface FakeNodeOptions {
  readonly name: string;
  readonly declaresWebSockets: boolean;
  /** Acts like a node behind a hop that passes only WebSocket v5 and the tunnel. Default: false. */
  readonly refusesOtherProtocols?: boolean;
  readonly pods: readonly FakePod[];
  /** Default: 127.0.0.1. Every client that can connect may run commands on this machine. */
  readonly address?: string;
  /** Default: 0, any free port. */
  readonly port?: number;
  /** Absent: the node speaks plain HTTP. */
  readonly tls?: { readonly certPem: string; readonly keyPem: string; readonly clientCaPem?: string };
  /**
   * With this or `tls.clientCaPem`, a request gets 401 unless it has the token or such a
   * certificate.
   */
  readonly bearerToken?: string;
  readonly limits?: Partial<FakeNodeLimits>;
}

export interface FakeNode {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  /** What this node's Node.status.declaredFeatures should contain. */
  readonly declaredFeatures: readonly string[];
  /** Unfinished sessions, including commands that outlive their client. */
  readonly sessionCount: number;
  /**
   * Ends all sessions, kills their processes and the containers' processes, and stops listening.
   */
  close(): Promise<void>;
}

/** Starts a node that looks like a kubelet with a container runtime. Resolves when it listens. */
export async function createFakeNode(options: FakeNodeOptions): Promise<FakeNode> {
  const limits = { ...defaultFakeNodeLimits, ...options.limits };
  const pods = new Map(
    options.pods.map((pod) => [`${pod.namespace}/${pod.name}`, new RunningPod(pod, limits)]),
  );
  const sessions: ServingNode["sessions"] = new Set();
  const shortestMs = Math.min(limits.streamCreationTimeoutMs, limits.streamStallTimeoutMs);
  const node: ServingNode = {
    limits,
    clock: new SessionClock(Math.max(1, Math.min(MAX_TICK_MS, shortestMs / 4))),
    sessions,
    declaresWebSockets: options.declaresWebSockets,
    refusesOtherProtocols: options.refusesOtherProtocols ?? false,
    findPod: (namespace, name) => pods.get(`${namespace}/${name}`),
  };
  const connections = new Set<Socket>();
  const server = listen(options, node);
  server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  server.listen(options.port ?? 0, options.address ?? "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    await stopAll(pods);
    throw error;
  }
  const { address, port } = server.address() as AddressInfo;
  return {
    name: options.name,
    address,
    port,
    declaredFeatures: options.declaresWebSockets ? [EXTEND_WEBSOCKETS] : [],
    get sessionCount() {
      return sessions.size;
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      await Promise.all([...sessions].map((session) => session.abort()));
      // On a half-open listener, closeAllConnections() misses a client that left during its TLS
      // handshake.
      for (const socket of connections) socket.destroy();
      await stopAll(pods);
      await closed;
    },
  };
}

function listen(options: FakeNodeOptions, node: ServingNode): Server {
  const refusalOf = (request: IncomingMessage): Refusal | undefined =>
    isAuthenticated(request, options) ? undefined : textRefusal(401, "Unauthorized");

  return createHttp1Server(
    HTTP_BOUNDS,
    {
      onRequest: (request, response) => {
        const refusal = refusalOf(request);
        const decision = refusal === undefined ? decide(request, node) : { refusal };
        // Node reports an upgrade only if both headers are present; without them no session can be
        // served.
        if ("respond" in decision) decision.respond(response);
        else if ("refusal" in decision) respond(response, decision.refusal);
        else respond(response, textRefusal(400, "Upgrade request required"));
      },
      onUpgrade: (request, socket, head) => {
        socket.on("error", () => {});
        const refusal = refusalOf(request);
        const decision = refusal === undefined ? decide(request, node) : { refusal };
        if ("refusal" in decision) refuseUpgrade(socket, decision.refusal);
        else if ("serve" in decision) decision.serve(socket, head);
        else refuseUpgrade(socket, textRefusal(400, "a log cannot be upgraded"));
      },
    },
    { tls: tlsOptionsOf(options) },
  );
}

function tlsOptionsOf({ tls }: FakeNodeOptions): TlsOptions | undefined {
  if (tls === undefined) return undefined;
  const { certPem: cert, keyPem: key, clientCaPem } = tls;
  return {
    cert,
    key,
    // Upgrades exist only in HTTP/1.1. The server is half-open, because a session may continue
    // after the client's last byte.
    ALPNProtocols: ["http/1.1"],
    allowHalfOpen: true,
    handshakeTimeout: HTTP_BOUNDS.headMs,
    ...(clientCaPem !== undefined && { ca: clientCaPem, requestCert: true, rejectUnauthorized: false }),
  };
}

function isAuthenticated(request: IncomingMessage, { bearerToken, tls }: FakeNodeOptions): boolean {
  if (bearerToken === undefined && tls?.clientCaPem === undefined) return true;
  if (request.socket instanceof TLSSocket && request.socket.authorized) return true;
  const given = /^Bearer +(.+)$/i.exec(request.headers.authorization ?? "")?.[1];
  return bearerToken !== undefined && given !== undefined && isEqual(given, bearerToken);
}

/** Takes the same time for any difference, so that timing reveals nothing. */
function isEqual(given: string, expected: string): boolean {
  const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digestOf(given), digestOf(expected));
}

async function stopAll(pods: ReadonlyMap<string, RunningPod>): Promise<void> {
  await Promise.all([...pods.values()].map((pod) => pod.stop()));
}

/** Answers on an upgrade request's socket and ends the connection, as behind a kubelet's proxy. */
function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
  const lines = [`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ""}`];
  for (const [name, value] of refusal.headers) lines.push(`${name}: ${value}`);
  if (!refusal.isBare) {
    lines.push(`Date: ${new Date().toUTCString()}`, `Content-Length: ${Buffer.byteLength(refusal.body)}`);
  }
  socket.on("error", () => socket.destroy());
  socket.end(`${lines.join("\r\n")}\r\n\r\n${refusal.body}`);
  // Reads the client's remaining bytes, so that they do not turn the answer into a connection
  // reset.
  socket.resume();
  socket.once("end", () => socket.destroy());
}

/** Answers a request that did not ask for an upgrade. */
function respond(response: ServerResponse, refusal: Refusal): void {
  const headers = [...refusal.headers, ["Content-Length", String(Buffer.byteLength(refusal.body))]];
  response.writeHead(refusal.status, headers.flat() as string[]);
  response.end(refusal.body);
}
