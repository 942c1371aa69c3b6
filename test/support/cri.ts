import http2 from "node:http2";
import net from "node:net";
import { DecodedMessage, encodeMessage, type FieldValue } from "./protobuf.ts";

/** A call whose grpc-status was not 0. */
export class CriError extends Error {
  readonly grpcStatus: number;
  /** The runtime's own message, without the method's name. */
  readonly grpcMessage: string;

  constructor(method: string, grpcStatus: number, grpcMessage: string) {
    super(`${method}: grpc-status ${grpcStatus}: ${grpcMessage}`);
    this.grpcStatus = grpcStatus;
    this.grpcMessage = grpcMessage;
  }
}

export const GRPC_STATUS = {
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
} as const;

export interface StreamOptions {
  stdin?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  tty?: boolean;
}

export interface PodOptions {
  name: string;
  namespace?: string;
  /** The cgroup of all the pod's processes, such as `/sluice-test-1`. */
  cgroupParent: string;
  logDirectory: string;
}

export interface ContainerOptions {
  name: string;
  image: string;
  command: readonly string[];
  /** Keeps stdin open for Attach. */
  stdin?: boolean;
  tty?: boolean;
}

/**
 * A pod's sandbox, with the configuration that containerd requires again when a container is
 * created in it.
 */
export interface Sandbox {
  id: string;
  config: Uint8Array;
}

/** The part of containerd's description of a sandbox that tests read. */
interface SandboxInfo {
  readonly runtimeSpec?: {
    readonly linux: { readonly namespaces: readonly { type: string; path?: string }[] };
  };
}

/**
 * The calls of CRI v1 that tests need, over the runtime's unix socket: gRPC is an HTTP/2 POST with a five-byte prefix, and
 * the messages are small enough to encode by field number (numbers from k8s.io/cri-api, pkg/apis/runtime/v1/api.proto).
 */
export class CriClient {
  readonly #session: http2.ClientHttp2Session;

  constructor(socketPath: string) {
    this.#session = http2.connect("http://localhost", { createConnection: () => net.connect(socketPath) });
    // Every pending call fails by itself if the connection is lost; this listener only keeps the
    // process alive.
    this.#session.on("error", () => {});
  }

  close(): void {
    this.#session.destroy();
  }

  async version(): Promise<string> {
    return (await this.#call("Version", {})).text(3);
  }

  async runPod(options: PodOptions): Promise<Sandbox> {
    const namespace = options.namespace ?? "default";
    const config = encodeMessage({
      1: encodeMessage({ 1: options.name, 2: `${namespace}-${options.name}-uid`, 3: namespace }),
      2: options.name,
      3: options.logDirectory,
      6: labels({
        "io.kubernetes.pod.name": options.name,
        "io.kubernetes.pod.namespace": namespace,
        "io.kubernetes.pod.uid": `${namespace}-${options.name}-uid`,
      }),
      8: encodeMessage({ 1: options.cgroupParent, 2: encodeMessage({ 1: namespaceOptions() }) }),
    });
    return { id: (await this.#call("RunPodSandbox", { 1: config })).text(1), config };
  }

  /** Creates and starts. @returns the container's id */
  async runContainer(sandbox: Sandbox, options: ContainerOptions): Promise<string> {
    const config = encodeMessage({
      1: encodeMessage({ 1: options.name }),
      2: encodeMessage({ 1: options.image }),
      3: options.command,
      9: labels({ "io.kubernetes.container.name": options.name }),
      11: `${options.name}.log`,
      12: options.stdin,
      14: options.tty,
      15: encodeMessage({ 2: encodeMessage({ 3: namespaceOptions() }) }),
    });
    const created = await this.#call("CreateContainer", { 1: sandbox.id, 2: config, 3: sandbox.config });
    await this.#call("StartContainer", { 1: created.text(1) });
    return created.text(1);
  }

  /** The URL of a stream. It works for one request, refused or not, within 60 seconds. */
  async execUrl(containerId: string, command: readonly string[], streams: StreamOptions): Promise<string> {
    const { tty, stdin, stdout, stderr } = streams;
    return (
      await this.#call("Exec", { 1: containerId, 2: command, 3: tty, 4: stdin, 5: stdout, 6: stderr })
    ).text(1);
  }

  /** Like {@link execUrl}; the message orders its fields differently from Exec's. */
  async attachUrl(containerId: string, streams: StreamOptions): Promise<string> {
    const { tty, stdin, stdout, stderr } = streams;
    return (await this.#call("Attach", { 1: containerId, 2: stdin, 3: tty, 4: stdout, 5: stderr })).text(1);
  }

  /** Like {@link execUrl}; only the legacy WebSocket form names its ports beforehand. */
  async portForwardUrl(sandboxId: string, ports: readonly number[] = []): Promise<string> {
    return (await this.#call("PortForward", { 1: sandboxId, 2: ports })).text(1);
  }

  /** The path at which the network namespace of the pod's sandbox is mounted. */
  async networkOf({ namespace, pod }: { namespace: string; pod: string }): Promise<string> {
    const filter = encodeMessage({
      3: labels({ "io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": namespace }),
    });
    const [sandbox] = (await this.#call("ListPodSandbox", { 1: filter })).messages(1);
    if (sandbox === undefined) throw new Error(`no sandbox of ${namespace}/${pod}`);
    const status = await this.#call("PodSandboxStatus", { 1: sandbox.text(1), 2: true });
    const info = status.messages(2).find((entry) => entry.text(1) === "info");
    const { runtimeSpec } = JSON.parse(info?.text(2) ?? "{}") as SandboxInfo;
    const network = runtimeSpec?.linux.namespaces.find(({ type }) => type === "network");
    if (network?.path === undefined) throw new Error(`${namespace}/${pod} has no network of its own`);
    return network.path;
  }

  async removePods(): Promise<void> {
    const pods = (await this.#call("ListPodSandbox", {})).messages(1);
    for (const id of pods.map((pod) => pod.text(1))) {
      await this.#call("StopPodSandbox", { 1: id });
      await this.#call("RemovePodSandbox", { 1: id });
    }
  }

  #call(method: string, fields: Readonly<Record<number, FieldValue>>): Promise<DecodedMessage> {
    const message = encodeMessage(fields);
    const prefix = Buffer.alloc(5); // not compressed, then the length
    prefix.writeUInt32BE(message.length, 1);
    return new Promise((resolve, reject) => {
      const request = this.#session.request({
        ":method": "POST",
        ":path": `/runtime.v1.RuntimeService/${method}`,
        "content-type": "application/grpc",
        te: "trailers",
      });
      let outcome: http2.IncomingHttpHeaders = {};
      const chunks: Buffer[] = [];
      // A call that fails at once has its status in the first header block ("trailers only").
      request.on("response", (headers) => {
        outcome = headers;
      });
      request.on("trailers", (trailers) => {
        outcome = trailers;
      });
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("error", reject);
      request.on("close", () => reject(new Error(`${method}: the connection to the runtime closed`)));
      request.on("end", () => {
        const status = Number(outcome["grpc-status"] ?? Number.NaN);
        if (status === 0) resolve(new DecodedMessage(Buffer.concat(chunks).subarray(prefix.length)));
        else reject(new CriError(method, status, decodeURIComponent(String(outcome["grpc-message"] ?? ""))));
      });
      request.end(Buffer.concat([prefix, message]));
    });
  }
}

/** A map is a repeated message of key and value. */
function labels(values: Readonly<Record<string, string>>): Uint8Array[] {
  return Object.entries(values).map(([key, value]) => encodeMessage({ 1: key, 2: value }));
}

/** NamespaceOption: the pod's own network and IPC (POD is 0, the default), one PID namespace per container (CONTAINER is 1). */
function namespaceOptions(): Uint8Array {
  return encodeMessage({ 2: 1 });
}
