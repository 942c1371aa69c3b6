import type { Server } from "node:http";
import type { ListenAddress } from "../net/listen.ts";
import type { Component } from "../observability/component.ts";
import { closerOf } from "./close-server.ts";

export interface RunningListener extends Component {
  /** With the port that the system chose. */
  readonly at: ListenAddress;
}

/** Makes the server take connections; stopping cuts those that are left. Rejects when the address cannot be taken. */
export async function startListener(
  server: Server,
  listen: (server: Server) => Promise<ListenAddress>,
): Promise<RunningListener> {
  const close = closerOf(server);
  try {
    return { at: await listen(server), stop: close };
  } catch (error) {
    await close();
    throw error;
  }
}
