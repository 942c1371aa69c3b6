import type { Client, MethodDefinition } from "@grpc/grpc-js";
import type { MethodDefinition as LoadedMethod, PackageDefinition } from "@grpc/proto-loader";
import { notInstalled } from "@sluice/client/internal/config/optional-package";
import { CRI_SERVICE, type CriMethod, criNamespace } from "./cri-schema.ts";
import { RuntimeError } from "./runtime-error.ts";

export interface CriChannelOptions {
  /** `unix:///run/containerd/containerd.sock`. */
  readonly endpoint: string;
  /** Bytes of an answer. A longer one is refused unread. */
  readonly maxMessageBytes: number;
}

/** How soon a restarted runtime is tried again. gRPC's own back-off grows to two minutes. */
const RECONNECT_MS = { first: 100, longest: 1_000 };

const UNAVAILABLE = 14;
const INTERNAL = 13;

/**
 * Unary gRPC calls to one runtime over its unix socket. Connects at the first call and after a lost
 * connection. Without a connection a call fails at once.
 */
export class CriChannel {
  readonly #client: Client;
  readonly #definition: PackageDefinition;
  readonly #endpoint: string;

  private constructor(client: Client, definition: PackageDefinition, endpoint: string) {
    this.#client = client;
    this.#definition = definition;
    this.#endpoint = endpoint;
  }

  /** Loads the gRPC packages, which only a container runtime needs. Does not wait for the runtime. */
  static async open({ endpoint, maxMessageBytes }: CriChannelOptions): Promise<CriChannel> {
    const purpose = "a container runtime";
    const [grpc, { fromJSON }] = await Promise.all([
      import("@grpc/grpc-js").catch(notInstalled("@grpc/grpc-js", purpose)),
      import("@grpc/proto-loader").catch(notInstalled("@grpc/proto-loader", purpose)),
    ]);
    const definition = fromJSON(criNamespace as unknown as Parameters<typeof fromJSON>[0], {
      longs: Number,
      defaults: true,
    });
    const client = new grpc.Client(endpoint, grpc.credentials.createInsecure(), {
      "grpc.max_receive_message_length": maxMessageBytes,
      "grpc.initial_reconnect_backoff_ms": RECONNECT_MS.first,
      "grpc.max_reconnect_backoff_ms": RECONNECT_MS.longest,
      // Proxies from the environment do not apply to a unix socket.
      "grpc.enable_http_proxy": 0,
    });
    return new CriChannel(client, definition, endpoint);
  }

  /**
   * Throws RuntimeError: the runtime's refusal, Unavailable without a runtime, DeadlineExceeded, or
   * ResourceExhausted for a huge answer.
   */
  call(method: CriMethod, request: object, timeoutMs: number): Promise<unknown> {
    const service = this.#definition[CRI_SERVICE] as unknown as Readonly<
      Record<string, LoadedMethod<object, object>>
    >;
    const { path, requestSerialize, responseDeserialize } = service[method] as MethodDefinition<
      object,
      object
    >;
    return new Promise((resolve, reject) => {
      try {
        this.#client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          { deadline: Date.now() + timeoutMs },
          (error, answer) => {
            if (error === null) resolve(answer);
            else reject(this.#errorOf(method, error.code, error.details));
          },
        );
      } catch (error) {
        // A closed channel throws instead of failing the call.
        reject(new RuntimeError(method, INTERNAL, "the runtime's connection is closed", { cause: error }));
      }
    });
  }

  close(): void {
    this.#client.close();
  }

  #errorOf(method: CriMethod, code: number, details: string): RuntimeError {
    if (code !== UNAVAILABLE) return new RuntimeError(method, code, details);
    return new RuntimeError(
      method,
      code,
      `the container runtime at ${this.#endpoint} cannot be reached: ${details}`,
    );
  }
}
