import type { GatewayContext } from "../sessions/context.ts";
import type { EdgeRules } from "./edge-rules.ts";

/** What a listener needs, whatever it serves. */
export interface ListenerContext
  extends Pick<GatewayContext, "audit" | "clock" | "limits" | "logger" | "metrics" | "timeouts" | "tracing"> {
  readonly edge: EdgeRules;
}

/** A gateway with what its listeners need. */
export type ServingContext = GatewayContext & ListenerContext;
