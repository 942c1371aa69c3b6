import type { Authenticator } from "../../access/authn/authenticator.ts";
import type { ListenerContext } from "../../listeners/listener-context.ts";
import type { KnownNodes } from "../../nodes/known-nodes.ts";
import type { SessionRunContext } from "../../sessions/context.ts";
import type { AgentUpstream } from "./agent-upstream.ts";

/** All that the steps of a request need at the agent, built once by component.ts. */
export interface AgentContext extends ListenerContext, SessionRunContext {
  /** Knows the agent's own token and nothing else. */
  readonly authenticator: Authenticator;
  readonly upstream: AgentUpstream;
  /** What the API server was seen to do: to the agent it is the one node. */
  readonly nodes: KnownNodes;
  /** Tells the user why a session travels as it does. */
  note(text: string): void;
}
