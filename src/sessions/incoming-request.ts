import type { HeaderList } from "@sluice/client/internal/http/header-list";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { AuditTrail } from "../access/audit/audit-trail.ts";
import type { PeerCertificates, RequestSource } from "../access/authn/authenticator.ts";

/** What the gateway had learned about a request when it refused it. */
interface RequestNotes {
  /** The request's user, once known. */
  user?: string;
  /** The name of the impersonating caller. */
  requestedBy?: string;
  /** The refusal has been logged. */
  isLogged?: boolean;
}

/** A request from the HTTP server, independent of the server event that delivered it. */
export interface IncomingStreaming {
  readonly method: string;
  readonly url: URL;
  /** The raw request target, for upstreams that get the forwarded request. */
  readonly target: string;
  readonly headers: HeaderList;
  readonly peer?: PeerCertificates | undefined;
  /** The address of the connection's peer. */
  readonly remoteAddress: string;
  /** The source whose fair share the request uses until its user is known. */
  readonly source?: RequestSource | undefined;
  /**
   * Acquires a place for "user NAME", or for an address while the user `isUnknown`. Resolves with a
   * function that moves it to another name; rejects with StatusError 429. Absent: nothing is counted.
   */
  readonly admit?:
    | ((name: string, isUnknown?: boolean) => Promise<((newName: string) => void) | undefined>)
    | undefined;
  /** The client's address, then those of the trusted proxies that reported it. */
  readonly sourceAddresses?: readonly string[];
  /** The peer is a trusted proxy. */
  readonly isPeerTrusted?: boolean;
  /** Fields for the log line of a refusal. */
  readonly notes?: RequestNotes | undefined;
  /** The request's audit record; absent: auditing is off. */
  readonly trail?: AuditTrail | undefined;
  /** Absent: the request is not traced. */
  readonly trace?: RequestTrace | undefined;
}
