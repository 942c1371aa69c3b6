import { afterEach } from "vitest";
import { type GatewayHarness, type HarnessOptions, startGatewayHarness } from "./gateway-harness.ts";
import { type KubeletScript, ScriptedKubelet } from "./scripted-kubelet.ts";

export interface GatewayOverKubelet {
  readonly harness: GatewayHarness | undefined;
  readonly kubelet: ScriptedKubelet | undefined;
  /** Starts both, and returns the gateway's authority. */
  start(script: KubeletScript, options?: Partial<HarnessOptions>): Promise<string>;
}

/** A gateway and the one kubelet behind it, stopped after each test. `before` runs first. */
export function gatewayOverKubelet(before?: () => void): GatewayOverKubelet {
  let harness: GatewayHarness | undefined;
  let kubelet: ScriptedKubelet | undefined;
  afterEach(async () => {
    before?.();
    await harness?.close();
    await kubelet?.close();
    harness = kubelet = undefined;
  });
  return {
    get harness() {
      return harness;
    },
    get kubelet() {
      return kubelet;
    },
    async start(script, options = {}) {
      kubelet = new ScriptedKubelet(script);
      harness = await startGatewayHarness({ kubeletPort: await kubelet.listen(), ...options });
      return harness.authority;
    },
  };
}
