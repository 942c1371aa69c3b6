import type { Container, Pod, PodSpec } from "../../../src/api/objects.ts";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import type { Strategy } from "../../../src/api/strategy/strategy.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";

export const noGates = FeatureGates.defaults;
export const bothGates = FeatureGates.parse("H2CContainerProbe=true,GRPCContainerProbeTLS=true");
export const podStrategy = strategyOf("Pod") as Strategy<Pod>;

export const main = { name: "main", image: "web:1" };

/** A pod as it was decoded, in the default namespace. */
export function podOf(spec: Partial<PodSpec>, metadata: object = {}): Pod {
  const whole = { name: "web", namespace: "default", ...metadata };
  return { apiVersion: "v1", kind: "Pod", metadata: whole, spec: { containers: [main], ...spec } };
}

export function defaultedPod(spec: Partial<PodSpec>): Pod {
  return podStrategy.withDefaults(podOf(spec));
}

/** A pod whose only container has these fields. */
export function podWith(container: Partial<Container>): Pod {
  return defaultedPod({ containers: [{ ...main, ...container }] });
}
