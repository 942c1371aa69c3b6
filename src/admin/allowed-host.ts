import { isIP } from "node:net";

/** Names that no stranger can register: this machine's, one label, and those of the cluster's Services. */
const LOCAL_NAME = /^[^.]+$|\.localhost$|\.svc$|\.svc\.cluster\.local$/;

/**
 * Whether a request's Host names the listener rather than a foreign site (DNS rebinding: a page's own
 * name resolves to this address). Absent: no browser sent it.
 */
export function isAllowedHost(host: string | undefined, allowed: readonly string[] = []): boolean {
  if (host === undefined) return true;
  const name = host.replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase();
  const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || LOCAL_NAME.test(name) || allowed.some((each) => each.toLowerCase() === name);
}
