import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type sendUnaryData,
  status,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { fromJSON } from "@grpc/proto-loader";
import { CRI_METHODS, CRI_SERVICE, type CriMethod, criNamespace } from "../../src/cri/cri-schema.ts";

/** A script throws this to fail a call. */
export class GrpcFailure extends Error {
  readonly code: number;

  constructor(code: number, details: string) {
    super(details);
    this.code = code;
  }
}

/**
 * A runtime's answers by method; a method without one is not implemented. A promise that never
 * settles means an answer that never comes.
 */
export type RuntimeScript = { [Method in CriMethod]?: (request: never) => unknown };

/** A CRI service on a unix socket of its own that answers as the test scripts it. */
export class ScriptedRuntime {
  readonly folder: string = mkdtempSync(path.join(tmpdir(), "sluice-runtime-"));
  readonly socket: string = path.join(this.folder, "cri.sock");
  readonly calls: { readonly method: CriMethod; readonly request: Record<string, unknown> }[] = [];
  script: RuntimeScript;
  #server: Server | undefined;

  constructor(script: RuntimeScript = {}) {
    this.script = script;
  }

  get endpoint(): string {
    return `unix://${this.socket}`;
  }

  callsOf(method: CriMethod): Record<string, unknown>[] {
    return this.calls.filter((call) => call.method === method).map(({ request }) => request);
  }

  async start(): Promise<void> {
    const definition = fromJSON(criNamespace as unknown as Parameters<typeof fromJSON>[0], {
      longs: Number,
      defaults: true,
    });
    const server = new Server({ "grpc.max_send_message_length": -1 });
    const handlers = Object.fromEntries(CRI_METHODS.map((method) => [method, this.#handlerOf(method)]));
    server.addService(definition[CRI_SERVICE] as unknown as ServiceDefinition, handlers);
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(this.endpoint, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      ),
    );
    this.#server = server;
  }

  /** Stops like a runtime that is killed: pending calls fail. */
  stop(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    rmSync(this.socket, { force: true });
  }

  remove(): void {
    this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #handlerOf(method: CriMethod): UntypedHandleCall {
    return async (call: { request: Record<string, unknown> }, callback: sendUnaryData<object>) => {
      this.calls.push({ method, request: call.request });
      const answer = this.script[method] as ((request: object) => unknown) | undefined;
      try {
        if (answer === undefined) throw new GrpcFailure(status.UNIMPLEMENTED, `unknown method ${method}`);
        callback(null, (await answer(call.request)) as object);
      } catch (error) {
        const code = error instanceof GrpcFailure ? error.code : status.UNKNOWN;
        callback({ code, details: (error as Error).message });
      }
    };
  }
}
