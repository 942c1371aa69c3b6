import type { Authenticator } from "../../access/authn/authenticator.ts";
import type { ListenerContext } from "../../listeners/listener-context.ts";
import type { KnownNodes } from "../../nodes/known-nodes.ts";
import type { SessionRunContext } from "../../sessions/context.ts";
import type { AgentUpstream } from "./agent-upstream.ts";

/** Everything the agent's request handling needs; component.ts builds it once. */
export interface AgentContext extends ListenerContext, SessionRunContext {
  /** Accepts only the agent's own token. */
  readonly authenticator: Authenticator;
  readonly upstream: AgentUpstream;
  /** Observed behaviour of the API server; the agent treats it as its only node. */
  readonly nodes: KnownNodes;
  /** Tells the user why a session takes its path. */
  note(text: string): void;
}
