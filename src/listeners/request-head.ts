import type { Duplex } from "node:stream";
import type { HeaderList } from "@sluice/client/internal/http/header-list";

/**
 * A request's head, independent of the HTTP version. A WebSocket on an HTTP/2 stream appears as the
 * equivalent upgrade.
 */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly headers: HeaderList;
  /** The request's connection. */
  readonly socket: Duplex;
}
