/**
 * The gateway's Kubernetes feature gates. Names, stages and defaults follow kube-apiserver 1.37;
 * parsing and errors follow component-base/featuregate/feature_gate.go.
 */
interface FeatureGateSpec {
  readonly stage: "alpha" | "beta" | "ga";
  readonly isOnByDefault: boolean;
  /** Gates that must be on if this one is. */
  readonly needs: readonly string[];
  /** The gate may be named, but not set to another value. */
  readonly isLocked?: true;
}

/** One row for each gate. */
const FEATURE_GATES = {
  /**
   * Translates WebSocket exec and attach (v5.channel.k8s.io) to SPDY for nodes without WebSocket.
   */
  TranslateStreamCloseWebsocketRequests: { stage: "beta", isOnByDefault: true, needs: [] },
  /**
   * Unwraps WebSocket port-forward (SPDY/3.1+portforward.k8s.io) for nodes that speak only SPDY.
   */
  PortForwardWebsockets: { stage: "beta", isOnByDefault: true, needs: [] },
  /** An upgrading GET needs `create` on the subresource besides `get`. */
  AuthorizePodWebsocketUpgradeCreatePermission: { stage: "beta", isOnByDefault: true, needs: [] },
  /** Also grants impersonation by KEP-5284's verbs, for some users and some requests. */
  ConstrainedImpersonation: { stage: "beta", isOnByDefault: true, needs: [] },
  /** Reads `Node.status.declaredFeatures`. */
  NodeDeclaredFeatures: { stage: "beta", isOnByDefault: true, needs: [] },
  /** Passes WebSocket unchanged to nodes that declare `ExtendWebSocketsToKubelet`. */
  ExtendWebSocketsToKubelet: { stage: "beta", isOnByDefault: true, needs: ["NodeDeclaredFeatures"] },
  /** A Service's name may begin with a digit (KEP-5311). */
  RelaxedServiceNameValidation: { stage: "beta", isOnByDefault: true, needs: [] },
  /** Containers may have gRPC probes (KEP-2727). Kubernetes locked it in 1.27; flags of older clusters still name it. */
  GRPCContainerProbe: { stage: "ga", isOnByDefault: true, needs: [], isLocked: true },
  /** HTTP probes may ask for HTTP/2 in cleartext (`httpGet.protocol`, KEP-5999). */
  H2CContainerProbe: { stage: "alpha", isOnByDefault: false, needs: [] },
  /** gRPC probes may ask for TLS (`grpc.mode`, KEP-4939). */
  GRPCContainerProbeTLS: { stage: "alpha", isOnByDefault: false, needs: [] },
} as const satisfies Record<string, FeatureGateSpec>;

type FeatureGateName = keyof typeof FEATURE_GATES;

export const featureGateNames = Object.keys(FEATURE_GATES) as readonly FeatureGateName[];

/** `AllAlpha` and `AllBeta` set every gate of their stage that is not set by name. */
const STAGE_OF_GROUP: ReadonlyMap<string, FeatureGateSpec["stage"]> = new Map([
  ["AllAlpha", "alpha"],
  ["AllBeta", "beta"],
]);

/**
 * An unknown gate, a value that is not a boolean, or contradicting gates. The message is
 * Kubernetes' own.
 */
export class FeatureGateError extends Error {
  override readonly name = "FeatureGateError";
  /** The gate as the operator wrote it. */
  readonly gate: string;

  constructor(gate: string, message: string) {
    super(message);
    this.gate = gate;
  }
}

/** The gates that are on. Immutable; every instance has known gates and satisfied dependencies. */
export class FeatureGates {
  static readonly defaults = FeatureGates.parse({});

  /** Gates and groups set by name. */
  readonly #settings: ReadonlyMap<string, boolean>;
  readonly #enabled: ReadonlyMap<FeatureGateName, boolean>;

  private constructor(settings: ReadonlyMap<string, boolean>) {
    this.#settings = settings;
    this.#enabled = resolve(settings);
  }

  /** Parses the flag's form (`A=true,B=false`) or the file's map. Throws `FeatureGateError`. */
  static parse(spec: string | Readonly<Record<string, boolean>>): FeatureGates {
    return new FeatureGates(settingsOf(spec));
  }

  /** A copy with some gates overridden, as a flag overrides the file. Throws `FeatureGateError`. */
  with(spec: string | Readonly<Record<string, boolean>>): FeatureGates {
    return new FeatureGates(new Map([...this.#settings, ...settingsOf(spec)]));
  }

  isEnabled(name: FeatureGateName): boolean {
    return this.#enabled.get(name) === true;
  }

  /** Lists every gate as `A=true,B=false` in the table's order; `parse` reads it back. */
  toString(): string {
    return featureGateNames.map((name) => `${name}=${this.isEnabled(name)}`).join(",");
  }
}

function settingsOf(spec: string | Readonly<Record<string, boolean>>): Map<string, boolean> {
  return typeof spec === "string" ? parseFeatureGateFlag(spec) : new Map(Object.entries(spec));
}

function resolve(settings: ReadonlyMap<string, boolean>): ReadonlyMap<FeatureGateName, boolean> {
  const stages = new Map<FeatureGateSpec["stage"], boolean>();
  for (const [name, value] of settings) {
    const stage = STAGE_OF_GROUP.get(name);
    if (stage !== undefined) {
      stages.set(stage, value);
    } else if (!isFeatureGateName(name)) {
      throw new FeatureGateError(name, `unrecognized feature gate: ${name}`);
    }
  }
  const enabled = new Map<FeatureGateName, boolean>();
  for (const name of featureGateNames) {
    const spec: FeatureGateSpec = FEATURE_GATES[name];
    const wanted = settings.get(name);
    if (spec.isLocked && wanted !== undefined && wanted !== spec.isOnByDefault) {
      const locked = `feature is locked to ${spec.isOnByDefault}`;
      throw new FeatureGateError(name, `cannot set feature gate ${name} to ${wanted}, ${locked}`);
    }
    enabled.set(name, settings.get(name) ?? stages.get(spec.stage) ?? spec.isOnByDefault);
  }
  requireDependencies(enabled);
  return enabled;
}

/** Parses `A=true,B=false`. The last value of a repeated name counts, as in kube-apiserver. */
function parseFeatureGateFlag(flag: string): Map<string, boolean> {
  const settings = new Map<string, boolean>();
  for (const part of flag.split(",")) {
    if (part === "") {
      continue;
    }
    const equals = part.indexOf("=");
    const name = (equals === -1 ? part : part.slice(0, equals)).trim();
    if (equals === -1) {
      throw new FeatureGateError(name, `missing bool value for ${name}`);
    }
    settings.set(name, parseGoBool(name, part.slice(equals + 1).trim()));
  }
  return settings;
}

const TRUE_WORDS = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const FALSE_WORDS = new Set(["0", "f", "F", "FALSE", "false", "False"]);

/** Go's strconv.ParseBool, which kube-apiserver uses for the flag. */
function parseGoBool(gate: string, text: string): boolean {
  if (TRUE_WORDS.has(text)) {
    return true;
  }
  if (FALSE_WORDS.has(text)) {
    return false;
  }
  throw new FeatureGateError(gate, `invalid value of ${gate}=${text}: must be true or false`);
}

export function isFeatureGateName(name: string): name is FeatureGateName {
  return Object.hasOwn(FEATURE_GATES, name);
}

function requireDependencies(enabled: ReadonlyMap<FeatureGateName, boolean>): void {
  for (const name of featureGateNames) {
    const unmet = FEATURE_GATES[name].needs.filter((needed) => !enabled.get(needed));
    if (enabled.get(name) && unmet.length > 0) {
      throw new FeatureGateError(
        name,
        `${name} is enabled, but depends on features that are disabled: [${unmet.join(" ")}]`,
      );
    }
  }
}
