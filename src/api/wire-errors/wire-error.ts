import type { StatusError } from "@sluice/client/internal/api/status";

/** The places where an answer can appear, in the order of the columns of docs/errors.md. */
export const WIRE_PLACES = ["streaming", "forwarding", "ingress", "kubelet"] as const;

/**
 * One cause, and the answer to it in each place. Facts are the values that the text contains. The
 * answer is a Status on API listeners, its text on the kubelet's, and `CODE PHRASE: TEXT` on an
 * Ingress.
 */
export type WireError = { readonly cause: string } & {
  readonly [Place in (typeof WIRE_PLACES)[number]]?: (facts: never) => StatusError;
};
