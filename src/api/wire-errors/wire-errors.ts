import { REQUEST_ERRORS, ROUTE_ERRORS } from "./request-errors.ts";
import { SESSION_API_ERRORS } from "./session-api-errors.ts";
import { SESSION_ERRORS } from "./session-errors.ts";
import { KUBELET_ERRORS, UPSTREAM_ERRORS } from "./upstream-errors.ts";

/**
 * Every error that the gateway itself answers, by cause and place; docs/errors.md is generated from
 * it. Clients match these texts. The read-only API words its validation itself.
 */
export const WIRE_ERRORS = {
  ...REQUEST_ERRORS,
  ...SESSION_ERRORS,
  ...SESSION_API_ERRORS,
  ...UPSTREAM_ERRORS,
  ...ROUTE_ERRORS,
  ...KUBELET_ERRORS,
} as const;
