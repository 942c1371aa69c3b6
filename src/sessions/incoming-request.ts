import type { AuditTrail } from "../access/audit/audit-trail.ts";
import type { PeerCertificates, RequestSource } from "../access/authn/authenticator.ts";
import type { HeaderList } from "../http/header-list.ts";
import type { RequestTrace } from "../observability/trace.ts";

/** What was learned of a request before it was refused. */
export interface RequestNotes {
  /** The name of the user it is for, once that is known. */
  user?: string;
  /** The name of the impersonating caller. */
  requestedBy?: string;
  /** Its refusal has its line in the log. */
  isLogged?: boolean;
}

/** A request as it came from the wire, whichever event of the HTTP server brought it. */
export interface IncomingStreaming {
  readonly method: string;
  readonly url: URL;
  /** As it came, for upstreams that it is forwarded to. */
  readonly target: string;
  readonly headers: HeaderList;
  readonly peer?: PeerCertificates | undefined;
  /** Of the connection. */
  readonly remoteAddress: string;
  /** Whose turns it takes before its user is known. */
  readonly source?: RequestSource | undefined;
  /**
   * Takes a place of the user, or of an address whose user `isUnknown`. Resolves, once, with what makes
   * it another user's; rejects with StatusError 429. Absent: nothing is counted.
   */
  readonly admit?:
    | ((name: string, isUnknown?: boolean) => Promise<((newName: string) => void) | undefined>)
    | undefined;
  /** The client's own address first, then those of the proxies that are trusted to tell it. */
  readonly sourceAddresses?: readonly string[];
  /** The connection is that of a proxy of ours. */
  readonly isPeerTrusted?: boolean;
  /** What the log says of a refusal. */
  readonly notes?: RequestNotes | undefined;
  /** The audit record of this request; absent when nothing is recorded. */
  readonly trail?: AuditTrail | undefined;
  /** Absent: it is not traced. */
  readonly trace?: RequestTrace | undefined;
}
