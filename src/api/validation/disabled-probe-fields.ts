import type { FeatureGates } from "../../config/feature-gates.ts";
import type { Container, PodSpec } from "../objects.ts";
import type { Lifecycle, Probe, ProbeHandler } from "../probe-objects.ts";

/** Which optional probe fields an object may have. */
export interface ProbeFieldOptions {
  /** `httpGet.protocol` (KEP-5999). */
  readonly allowsHTTPProtocol: boolean;
  /** `grpc.mode` (KEP-4939). */
  readonly allowsGRPCMode: boolean;
}

/**
 * Allows fields whose gate is on, and those that the object already had: switching a gate off must
 * not make stored objects unwritable.
 */
export function probeFieldOptions(gates: FeatureGates, old: PodSpec | undefined): ProbeFieldOptions {
  return {
    allowsHTTPProtocol: gates.isEnabled("H2CContainerProbe") || usesHTTPProtocol(old),
    allowsGRPCMode: gates.isEnabled("GRPCContainerProbeTLS") || usesGRPCMode(old),
  };
}

/**
 * Clears forbidden fields in every container, and keeps the rest of each probe. Defaulting has
 * already removed nulls from lists.
 */
export function dropDisabledProbeFields(
  next: PodSpec,
  old: PodSpec | undefined,
  gates: FeatureGates,
): PodSpec {
  const options = probeFieldOptions(gates, old);
  const dropsProtocol = !options.allowsHTTPProtocol && usesHTTPProtocol(next);
  const dropsMode = !options.allowsGRPCMode && usesGRPCMode(next);
  if (!dropsProtocol && !dropsMode) return next;
  const cleared = <Handler extends ProbeHandler>(handler: Handler): Handler => ({
    ...handler,
    ...(dropsProtocol && handler.httpGet && { httpGet: without(handler.httpGet, "protocol") }),
    ...(dropsMode && handler.grpc && { grpc: without(handler.grpc, "mode") }),
  });
  return mapContainers(next, (container) => mapHandlers(container, cleared));
}

function usesHTTPProtocol(spec: PodSpec | undefined): boolean {
  return handlersOf(spec).some(({ httpGet }) => httpGet?.protocol !== undefined);
}

function usesGRPCMode(spec: PodSpec | undefined): boolean {
  return handlersOf(spec).some(({ grpc }) => grpc?.mode !== undefined);
}

function handlersOf(spec: PodSpec | undefined): ProbeHandler[] {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec ?? {};
  return [...containers, ...initContainers, ...ephemeralContainers].flatMap((container) =>
    [
      container.livenessProbe,
      container.readinessProbe,
      container.startupProbe,
      container.lifecycle?.postStart,
      container.lifecycle?.preStop,
    ].filter((handler) => handler !== undefined),
  );
}

function mapContainers(spec: PodSpec, change: (container: Container) => Container): PodSpec {
  const { containers, initContainers, ephemeralContainers } = spec;
  return {
    ...spec,
    ...(containers && { containers: containers.map(change) }),
    ...(initContainers && { initContainers: initContainers.map(change) }),
    ...(ephemeralContainers && { ephemeralContainers: ephemeralContainers.map(change) }),
  };
}

function mapHandlers(container: Container, change: <H extends ProbeHandler>(handler: H) => H): Container {
  const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
  const probes: Partial<Record<"livenessProbe" | "readinessProbe" | "startupProbe", Probe>> = {
    ...(livenessProbe && { livenessProbe: change(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: change(readinessProbe) }),
    ...(startupProbe && { startupProbe: change(startupProbe) }),
  };
  if (lifecycle === undefined) return { ...container, ...probes };
  const { postStart, preStop } = lifecycle;
  const hooks: Lifecycle = {
    ...lifecycle,
    ...(postStart && { postStart: change(postStart) }),
    ...(preStop && { preStop: change(preStop) }),
  };
  return { ...container, ...probes, lifecycle: hooks };
}

function without<T extends object, Name extends keyof T>(value: T, name: Name): Omit<T, Name> {
  const { [name]: _, ...rest } = value;
  return rest;
}
