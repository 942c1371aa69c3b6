import type { HeaderList } from "@sluice/client/internal/http/header-list";
import type { RefusedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";

/** The answer to a client's upgrade: the headers of a 101. */
export interface SwitchAnswer {
  readonly headers: HeaderList;
  readonly statusMessage?: string | undefined;
}

/** Carries the session over this connection. `status`: the answer's status. */
export type BeginSession = (connection: UpgradedConnection, status: 101 | 200) => void;

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
