import type { NodeStreaming } from "../../src/config/sections/kubelet.ts";
import { type GatewayHarness, type HarnessOptions, startGatewayHarness } from "./gateway-harness.ts";

/** Every node is behind a hop that passes only WebSocket. */
export const websocketOnly: NodeStreaming = {
  mode: "websocket-only",
  nodes: new Map(),
  retryFailedPathMs: 1_000,
  maxRetryFailedPathMs: 1_000,
};

interface ScriptedNode {
  listen(): Promise<number>;
  close(): Promise<unknown>;
}

/** A gateway in front of one such node, which a script controls; one test at a time. */
export class BridgedNode<Script, Node extends ScriptedNode> {
  readonly #create: (script: Script) => Node;
  harness: GatewayHarness | undefined;
  node: Node | undefined;

  constructor(create: (script: Script) => Node) {
    this.#create = create;
  }

  /** Starts both, and returns the gateway's authority. */
  readonly start = async (script: Script, options: Partial<HarnessOptions> = {}): Promise<string> => {
    this.node = this.#create(script);
    const kubeletPort = await this.node.listen();
    this.harness = await startGatewayHarness({ kubeletPort, streaming: websocketOnly, ...options });
    return this.harness.authority;
  };

  /** The metric samples of sessions' ends. */
  readonly endCauses = async (): Promise<string[]> => {
    const samples = await this.harness?.metric("sluice_streaming_sessions_ended_total");
    return samples?.filter((line) => !line.endsWith(" 0")) ?? [];
  };

  readonly close = async (): Promise<void> => {
    await this.harness?.close();
    await this.node?.close();
    this.harness = undefined;
    this.node = undefined;
  };
}
