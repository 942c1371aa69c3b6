import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  badRequest,
  forbidden,
  internalError,
  methodNotAllowed,
  StatusError,
  unknownPath,
  unsupportedMediaType,
} from "../../../packages/client/src/api/status.ts";
import { statusBody } from "../../../packages/client/src/api/status-body.ts";
import type { ApiObject } from "../../../src/api/api-object.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import { type Caller, type Callers, callersOf } from "./callers.ts";
import { discoveryDocument } from "./discovery.ts";
import { Faults, type FaultyRequest } from "./faults.ts";
import { ObjectStore } from "./object-store.ts";
import { PodLogs } from "./pod-logs.ts";
import { getOrList, watchPresenter } from "./reads.ts";
import { parseResourcePath, qualifiedName, type ResourcePath, resourceOfKind } from "./resources.ts";
import { type Allows, answerReview } from "./reviews.ts";
import { wantedBy } from "./selectors.ts";
import { inVersionOf } from "./versions.ts";
import { Watches } from "./watches.ts";
import { create, patch, remove, stampedNew, update, type WriteContext } from "./writes.ts";

export interface TestApiServerOptions {
  readonly port?: number;
  /** Absent: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
  /** The callers by their tokens. Absent: every caller is an administrator. */
  readonly tokens?: Readonly<Record<string, Caller>>;
  /**
   * Answers reviews and, with `enforces`, authorizes requests, too. Without it everything is
   * allowed.
   */
  readonly allows?: Allows;
  readonly enforces?: boolean;
  readonly gates?: FeatureGates;
  /** The number of events that are remembered for watches. */
  readonly maxEvents?: number;
  readonly bookmarkIntervalMs?: number;
  /** Handles exec, attach and port-forward, which this server does not implement. */
  readonly onUpgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

export interface RecordedRequest extends FaultyRequest {
  readonly caller: Caller | undefined;
  readonly userAgent: string;
}

const MAX_RECORDED_REQUESTS = 5_000;
const MAX_BODY_BYTES = 3 * 1024 * 1024;
const WATCH_VERB = { true: "watch", false: "list" } as const;
const VERBS: Readonly<Record<string, string>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/**
 * A Kubernetes API server as far as clients can tell: it lists, watches, writes, reviews, serves
 * discovery, validates with the strategies of `src/api`, and fails on request. Persists nothing.
 */
export class TestApiServer {
  readonly store: ObjectStore;
  readonly watches: Watches;
  readonly faults = new Faults();
  readonly logs = new PodLogs();
  readonly requests: RecordedRequest[] = [];
  readonly #options: TestApiServerOptions;
  readonly #callers: Callers;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port: number;

  private constructor(options: TestApiServerOptions) {
    this.#options = options;
    this.#port = options.port ?? 0;
    this.#callers = callersOf(options.tokens);
    this.store = new ObjectStore({ maxEvents: options.maxEvents ?? 10_000 });
    this.watches = new Watches(this.store, options.bookmarkIntervalMs);
    for (const name of ["default", "kube-system"]) this.apply(namespaceNamed(name));
  }

  static async start(options: TestApiServerOptions = {}): Promise<TestApiServer> {
    const server = new TestApiServer(options);
    await server.listen();
    return server;
  }

  get url(): string {
    return `${this.#options.tls ? "https" : "http"}://127.0.0.1:${this.#port}`;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Listens, on its earlier port if it had one. */
  async listen(): Promise<void> {
    const { tls, onUpgrade } = this.#options;
    const answer = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#answer(request, response);
    const server = tls
      ? createSecureServer(
          {
            cert: tls.cert,
            key: tls.key,
            ...(tls.clientCa && { ca: tls.clientCa, requestCert: true, rejectUnauthorized: false }),
          },
          answer,
        )
      : createServer(answer);
    if (onUpgrade !== undefined) server.on("upgrade", onUpgrade);
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Breaks every connection and stops listening. Stored objects stay. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(server, "close");
  }

  /** Stores an object unchanged and unchecked, for the set-up of a test. */
  apply(object: object): ApiObject {
    const given = object as ApiObject;
    const resource = resourceOfKind(given.kind);
    const { namespace = resource.isNamespaced ? "default" : "", name } = given.metadata;
    const old = this.store.get(resource, namespace, name);
    const metadata = { ...old?.metadata, ...given.metadata, ...(namespace !== "" && { namespace }) };
    return this.store.put(
      resource,
      old === undefined ? stampedNew({ ...given, metadata }) : { ...given, metadata },
    );
  }

  remove(kind: string, namespace: string, name: string): void {
    this.store.delete(resourceOfKind(kind), namespace, name);
  }

  /** A kubeconfig for a token. Its certificate authority is the server's own certificate. */
  async writeKubeconfig(
    file: string,
    token = "",
    certificateAuthority = this.#options.tls?.cert,
  ): Promise<string> {
    const ca =
      certificateAuthority === undefined
        ? {}
        : { "certificate-authority-data": base64(certificateAuthority) };
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace: "default" } }],
      clusters: [{ name: "test", cluster: { server: this.url, ...ca } }],
      users: [{ name: "test", user: token === "" ? {} : { token } }],
    };
    await writeFile(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => {});
    try {
      await this.#handle(request, response);
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { status } = error instanceof StatusError ? error : internalError(String(error));
      const retryAfter = status.details?.retryAfterSeconds;
      response.writeHead(status.code, {
        "Content-Type": "application/json",
        ...(retryAfter !== undefined && { "Retry-After": String(retryAfter) }),
      });
      response.end(statusBody(status));
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", headers } = request;
    const { pathname: path, searchParams: query } = new URL(request.url ?? "/", "http://server");
    const isWatch = query.get("watch") === "true" || query.get("watch") === "1";
    const record = { method, path, query, isWatch, userAgent: headers["user-agent"] ?? "" };
    const body = await readBody(request);
    if (await this.faults.strike(record, response)) return;
    if (/^\/(?:healthz|livez|readyz)$/.test(path)) return void response.end("ok");
    const caller = this.#identify(request, record);
    const accept = headers.accept ?? "";
    const document = method === "GET" ? discoveryDocument(path) : undefined;
    if (document !== undefined) return sendJson(response, 200, document);
    const json = parsedBody(body, headers["content-type"] ?? "application/json");
    const { allows = () => true } = this.#options;
    const review =
      method === "POST" ? answerReview(path, json, { callers: this.#callers, allows, caller }) : undefined;
    if (review !== undefined) return sendJson(response, 201, review);
    const resourcePath = parseResourcePath(path);
    if (resourcePath === undefined) throw unknownPath();
    this.#authorize(resourcePath, method, isWatch, caller);
    if (method === "GET") return this.#read(resourcePath, query, isWatch, accept, response);
    this.#write(resourcePath, method, query, json, headers["content-type"] ?? "", response);
  }

  #identify(request: IncomingMessage, record: Omit<RecordedRequest, "caller">): Caller {
    const note = (caller: Caller | undefined) => {
      this.requests.push({ ...record, caller });
      if (this.requests.length > MAX_RECORDED_REQUESTS) this.requests.shift();
    };
    try {
      const caller = this.#callers.identify(request);
      note(caller);
      return caller;
    } catch (error) {
      note(undefined);
      throw error;
    }
  }

  #authorize(path: ResourcePath, method: string, isWatch: boolean, { username, groups }: Caller): void {
    const { enforces = false, allows = () => true } = this.#options;
    const { resource, namespace = "", name = "", subresource = "" } = path;
    const verb = VERBS[method] ?? (name === "" ? WATCH_VERB[`${isWatch}`] : "get");
    const asked = { user: username, groups, verb, namespace, resource: resource.plural, subresource, name };
    if (!enforces || allows(asked)) return;
    const what = `User ${JSON.stringify(username)} cannot ${verb} resource ${JSON.stringify(resource.plural)}`;
    throw forbidden(qualifiedName(resource), name, `${what} in API group ${JSON.stringify(resource.group)}`);
  }

  #read(
    path: ResourcePath,
    query: URLSearchParams,
    isWatch: boolean,
    accept: string,
    response: ServerResponse,
  ): void {
    const { resource, namespace = "", name = "", subresource } = path;
    if (subresource === "log") {
      getOrList({ ...path, subresource: undefined }, new URLSearchParams(), "", this.store);
      this.logs.answer(namespace, name, query, response);
    } else if (isWatch) {
      const present = watchPresenter(resource, query, accept);
      this.watches.begin({ resource, query, isWanted: wantedBy(path, query), present }, response);
    } else sendJson(response, 200, getOrList(path, query, accept, this.store));
  }

  #write(
    path: ResourcePath,
    method: string,
    query: URLSearchParams,
    body: unknown,
    contentType: string,
    response: ServerResponse,
  ): void {
    const { gates = FeatureGates.defaults } = this.#options;
    const context: WriteContext = { store: this.store, gates, isDryRun: query.get("dryRun") === "All" };
    if (method === "DELETE") {
      this.#delete(path, query, body, context, response);
      return;
    }
    const { resource, name } = path;
    const isOnObject = name !== undefined;
    const write =
      method === "POST" && !isOnObject
        ? () => create(path, body, context)
        : method === "PUT" && isOnObject
          ? () => update(path, body, context)
          : method === "PATCH" && isOnObject
            ? () => patch(path, contentType, body, context)
            : undefined;
    if (write === undefined) throw methodNotAllowed(method, resource.plural, name);
    const { object, warnings, isCreated } = write();
    if (warnings.length > 0)
      response.setHeader(
        "Warning",
        warnings.map((text) => `299 - ${JSON.stringify(text)}`),
      );
    sendJson(response, isCreated ? 201 : 200, inVersionOf(resource, object));
  }

  #delete(
    path: ResourcePath,
    query: URLSearchParams,
    options: unknown,
    context: WriteContext,
    response: ServerResponse,
  ): void {
    const { resource, name } = path;
    if (name === undefined) {
      const doomed = this.store.list(resource).filter(wantedBy(path, query));
      for (const { metadata } of doomed) {
        remove({ ...path, namespace: metadata.namespace, name: metadata.name }, undefined, context);
      }
    }
    const uid = name && this.store.get(resource, path.namespace ?? "", name)?.metadata.uid;
    const kept = name === undefined ? undefined : remove(path, options, context);
    const details = {
      name,
      kind: resource.plural,
      uid,
      ...(resource.group !== "" && { group: resource.group }),
    };
    sendJson(
      response,
      200,
      kept ?? { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details },
    );
  }
}

function namespaceNamed(name: string): object {
  const labels = { "kubernetes.io/metadata.name": name };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels }, status: { phase: "Active" } };
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": body.byteLength });
  response.end(body);
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES) throw badRequest("the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Accepts only JSON: kubectl and client-go send protobuf only if discovery did not exclude it, and
 * fall back at 415.
 */
function parsedBody(body: Buffer, contentType: string): unknown {
  if (body.byteLength === 0) return undefined;
  if (!/[/+]json\b/.test(contentType)) throw unsupportedMediaType(["application/json"]);
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw badRequest((error as Error).message);
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
