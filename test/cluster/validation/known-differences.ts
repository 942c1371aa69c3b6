/** Sentences that only the API server, or only Sluice, may have about an object, and why. */
export interface KnownDifference {
  readonly kinds: readonly string[];
  /** A sentence of either side, with `- ` where only the API server has it and `+ ` where only Sluice has it. */
  readonly line: RegExp;
  readonly reason: string;
}

export const knownDifferences: readonly KnownDifference[] = [
  {
    kinds: ["Pod", "Ingress", "Node"],
    line: /^\+ \S+ "[^"]*" is invalid: status\./,
    reason: "a create ignores the status; a manifest holds what `kubectl get` wrote, and its status is read",
  },
  {
    kinds: ["Pod"],
    line: /^- .*ephemeral containers cannot be set on create$/,
    reason: "a create refuses debugging containers; a manifest may be of a pod that has them",
  },
  {
    kinds: ["EndpointSlice"],
    line: /^\+ .*: ports\[\d+\]\.port: Invalid value: -?\d+: must be between 1 and 65535, inclusive$/,
    reason: "the API server takes any number for a port of an EndpointSlice; none of these can be dialled",
  },
  {
    kinds: ["EndpointSlice"],
    line: /^- .*may not be in the loopback range \(127\.0\.0\.0\/8, ::1\/128\)$/,
    reason: "a manifest may name endpoints on the machine itself, as the demo does",
  },
];
