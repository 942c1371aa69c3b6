import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import type { StartProcess } from "./command-session.ts";
import type { LastWordOptions } from "./failure-frame.ts";

/** One exec or attach request, whatever protocol carries it. */
export interface CommandService extends LastWordOptions {
  readonly requested: RequestedStreams;
  readonly start: StartProcess;
}
