import type { Duplex } from "node:stream";
import type { HeaderList } from "../http/header-list.ts";

/** What a request begins with, whichever version of HTTP brought it; a WebSocket on an HTTP/2 stream is told as the upgrade that it is. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly headers: HeaderList;
  /** Its connection. */
  readonly socket: Duplex;
}
