import type { Duplex } from "node:stream";
import type { HeaderList } from "@sluice/client/internal/http/header-list";
import type { RefusedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { AuditTrail } from "../access/audit/audit-trail.ts";
import type { PeerCertificates, RequestSource } from "../access/authn/authenticator.ts";
import { answerSwitched, switchedStatusOf } from "../http/upgrade/answer-switched.ts";
import { copyRefusal } from "../http/upgrade/copy-refusal.ts";
import { withReusedReads } from "../net/accepted-socket.ts";

/** The answer to a client's upgrade: the headers of a 101. */
interface SwitchAnswer {
  readonly headers: HeaderList;
  readonly statusMessage?: string | undefined;
}

/** Carries the session over this connection. `status`: the answer's status. */
type BeginSession = (connection: UpgradedConnection, status: 101 | 200) => void;

/**
 * The client of a session that does not run yet: a socket that waits for its answer, or a caller in
 * memory. `accept` or `refuse` is called at most once; other refusals are thrown to the caller.
 */
export interface Downstream {
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** Answers, and calls `begin` at once. The answer and the first bytes leave in one write. */
  accept(answer: SwitchAnswer, begin: BeginSession): void;
  /** Passes the upstream's refusal on unchanged. Resolves once all of it has been passed on. */
  refuse(answer: RefusedUpgrade): Promise<void>;
}

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

/** Bytes that a client sends before its upgrade is answered. Past it they wait in the kernel. */
const MAX_EARLY_BYTES = 64 * 1024;

/**
 * A client that waits for the answer to its upgrade. Notices when the client leaves, so that no node
 * is dialled for it, and buffers bytes that it sends early.
 */
export class PendingClient implements Downstream {
  readonly socket: Duplex;
  readonly #abort = new AbortController();
  readonly #early: Uint8Array[] = [];
  #earlyBytes = 0;
  #status: number | undefined;

  /** `head`: bytes that the HTTP parser read beyond the request. */
  constructor(socket: Duplex, head: Uint8Array) {
    this.socket = socket;
    // A client that half-closes may still get output. HTTPS servers do not set this themselves.
    socket.allowHalfOpen = true;
    if (head.byteLength > 0) this.#keep(head);
    socket.on("data", this.#keep);
    socket.on("end", this.#gone);
    socket.on("close", this.#gone);
    // Without a listener an ECONNRESET would end the process; `close` follows anyway.
    socket.on("error", ignore);
  }

  /** Aborted when the client leaves. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The upstream's answer that was sent; undefined before it. */
  get status(): number | undefined {
    return this.#status;
  }

  accept({ headers, statusMessage }: SwitchAnswer, begin: BeginSession): void {
    const connection = withReusedReads(this.release());
    const { socket } = connection;
    const status = switchedStatusOf(socket);
    this.#status = status;
    socket.cork();
    try {
      answerSwitched(socket, headers, statusMessage);
      begin(connection, status);
    } finally {
      socket.uncork();
    }
  }

  async refuse(answer: RefusedUpgrade): Promise<void> {
    this.#status = answer.status;
    await copyRefusal(answer, this.release().socket);
  }

  /** Returns the socket, paused, and the bytes that arrived early. */
  release(): UpgradedConnection {
    this.socket.off("data", this.#keep);
    this.socket.off("end", this.#gone);
    this.socket.off("close", this.#gone);
    this.socket.pause();
    return { socket: this.socket, head: Buffer.concat(this.#early, this.#earlyBytes) };
  }

  readonly #keep = (chunk: Uint8Array): void => {
    this.#early.push(chunk);
    this.#earlyBytes += chunk.byteLength;
    if (this.#earlyBytes >= MAX_EARLY_BYTES) this.socket.pause();
  };

  readonly #gone = (): void => {
    this.#abort.abort();
  };
}

function ignore(): void {}
