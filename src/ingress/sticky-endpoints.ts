import { createHash, randomBytes } from "node:crypto";
import { type HeaderList, headerValues } from "@sluice/client/internal/http/header-list";
import type { Affinity } from "./affinity.ts";
import type { EndpointUpstream } from "./endpoint-upstream.ts";

/** An endpoint that every process and replica identifies alike, so that sessions find it again. */
export interface StickyEndpoint {
  readonly upstream: EndpointUpstream;
  /** The address's hash, for `balanced`; it never leaves the process. */
  readonly hash: number;
  /**
   * The pod UID's hash, which a `persistent` cookie contains. Undefined without a pod: then the
   * session is `balanced`.
   */
  readonly tag: string | undefined;
}

/** The endpoint for a client's session, and its cookie. */
interface StickyChoice {
  readonly upstream: EndpointUpstream;
  /**
   * The cookie's value for a response from this endpoint; undefined if the client has it already.
   */
  valueFor(served: EndpointUpstream): string | undefined;
}

const VALUE_BYTES = 16;
const VALUE = /^[0-9a-f]{32}$/;
/** Random values to try for each endpoint. */
const TRIES_PER_ENDPOINT = 16;
/**
 * Random cookies tried until one selects the endpoint, 16 for each endpoint. Past it no cookie is
 * sent; the next response tries again.
 */
const MAX_TRIES = 4_096;

export function stickyEndpoint(upstream: EndpointUpstream, podUid: string | undefined): StickyEndpoint {
  const { host, port } = upstream.endpoint;
  const tag =
    podUid === undefined
      ? undefined
      : createHash("sha256")
          .update(`${podUid} ${port}`)
          .digest("hex")
          .slice(0, 2 * VALUE_BYTES);
  return { upstream, hash: hashOf(`${host} ${port}`), tag };
}

/**
 * Stateless: a `balanced` cookie is a random value, and the endpoint with the highest joint hash
 * serves the session (rendezvous hashing). Undefined without endpoints.
 */
export function chooseSticky(
  endpoints: readonly StickyEndpoint[],
  { mode, name, changesOnFailure }: Affinity,
  headers: HeaderList,
): StickyChoice | undefined {
  const given = cookieValueOf(headers, name);
  const isPersistent = mode === "persistent" && endpoints.every(({ tag }) => tag !== undefined);
  const kept = isPersistent && given !== undefined ? endpoints.find(({ tag }) => tag === given) : undefined;
  const isKnown = isPersistent ? kept !== undefined : given !== undefined;
  const value = isKnown && given !== undefined ? given : randomValue();
  const upstream = (kept ?? winnerOf(endpoints, value))?.upstream;
  if (upstream === undefined) return undefined;
  const cookieOf = (served: EndpointUpstream): string | undefined =>
    isPersistent
      ? endpoints.find((endpoint) => endpoint.upstream === served)?.tag
      : valueLeadingTo(endpoints, served, value);
  return {
    upstream,
    valueFor: (served) => {
      if (isKnown && (served === upstream || !changesOnFailure)) return undefined;
      return cookieOf(served);
    },
  };
}

/** The first valid cookie of that name; others are ignored. */
function cookieValueOf(headers: HeaderList, name: string): string | undefined {
  for (const line of headerValues(headers, "cookie")) {
    for (const pair of line.split(";")) {
      const text = pair.trim();
      if (!text.startsWith(name) || text[name.length] !== "=") continue;
      const value = text.slice(name.length + 1);
      if (VALUE.test(value)) return value;
    }
  }
  return undefined;
}

function valueLeadingTo(
  endpoints: readonly StickyEndpoint[],
  served: EndpointUpstream,
  first: string,
): string | undefined {
  const wanted = endpoints.find(({ upstream }) => upstream === served);
  if (wanted === undefined) return undefined;
  if (leadsTo(wanted, endpoints, first)) return first;
  const tries = Math.min(TRIES_PER_ENDPOINT * endpoints.length, MAX_TRIES);
  // Requested in one call, because asking for 16 bytes takes longer than judging them.
  const drawn = randomBytes(VALUE_BYTES * tries).toString("hex");
  for (let at = 0; at < drawn.length; at += 2 * VALUE_BYTES) {
    const value = drawn.slice(at, at + 2 * VALUE_BYTES);
    if (leadsTo(wanted, endpoints, value)) return value;
  }
  return undefined;
}

/** Most values end at one of the first endpoints, so a search does not take quadratic time. */
function leadsTo(wanted: StickyEndpoint, endpoints: readonly StickyEndpoint[], value: string): boolean {
  const hash = hashOf(value);
  const score = mixed(hash ^ wanted.hash);
  return endpoints.every((endpoint) => endpoint === wanted || mixed(hash ^ endpoint.hash) < score);
}

function winnerOf(endpoints: readonly StickyEndpoint[], value: string): StickyEndpoint | undefined {
  const hash = hashOf(value);
  let winner: StickyEndpoint | undefined;
  let highest = -1;
  for (const endpoint of endpoints) {
    const score = mixed(hash ^ endpoint.hash);
    if (score <= highest) continue;
    highest = score;
    winner = endpoint;
  }
  return winner;
}

function randomValue(): string {
  return randomBytes(VALUE_BYTES).toString("hex");
}

/** FNV-1a with mixed bits, because neighbouring addresses differ in only a few bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return mixed(hash);
}

/** MurmurHash3's finalizer: every bit of the result depends on every input bit. */
function mixed(hash: number): number {
  let bits = hash;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
