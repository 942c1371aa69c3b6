import type { GatewayContext } from "../sessions/context.ts";
import type { EdgeRules } from "./edge-rules.ts";

/** The parts that every listener needs. */
export interface ListenerContext
  extends Pick<GatewayContext, "audit" | "clock" | "limits" | "logger" | "metrics" | "timeouts" | "tracing"> {
  readonly edge: EdgeRules;
}

/** A gateway's context with its listeners' parts. */
export type ServingContext = GatewayContext & ListenerContext;
