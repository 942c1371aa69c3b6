import type { StatusError } from "@sluice/client/internal/api/status";

/**
 * One cause, and the answer to it in each place. Facts are the values that the text contains. The
 * answer is a Status on API listeners, its text on the kubelet's, and `CODE PHRASE: TEXT` on an
 * Ingress.
 */
export type WireError = { readonly cause: string } & {
  readonly [Place in "streaming" | "forwarding" | "ingress" | "kubelet"]?: (facts: never) => StatusError;
};
