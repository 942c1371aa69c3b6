import type { HeaderList } from "@sluice/client/internal/http/header-list";
import type { UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { requestSession } from "../../sessions/request-session.ts";
import type { UpstreamRequest } from "../../sessions/upstream-request.ts";
import type { AgentContext } from "./agent-context.ts";
import { type AgentUpstream, inUsersName, reasonLines } from "./agent-upstream.ts";

/**
 * Requests the session with the user's credentials, and once more with new ones after a 401. Throws
 * UpstreamError, ConnectError for a failing proxy, and StatusError 503 without credentials.
 */
export async function dialUpstream(
  clientHeaders: HeaderList,
  request: UpstreamRequest,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<UpgradeResponse> {
  const { upstream } = agent;
  const before = await upstream.credentials();
  const first = await send(clientHeaders, request, before, signal, agent);
  if (first.kind !== "refused" || first.status !== 401) return first;
  upstream.forgetCredentials();
  const after = await upstream.credentials();
  if (isSame(before, after)) return first;
  first.body.destroy();
  return send(clientHeaders, request, after, signal, agent);
}

async function send(
  clientHeaders: HeaderList,
  request: UpstreamRequest,
  credentials: HeaderList,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<UpgradeResponse> {
  const { upstream, clock } = agent;
  const { endpoint, trace } = upstream;
  const linesWith = (shown: HeaderList): HeaderList => linesFor(clientHeaders, request, shown, upstream);
  const headers = linesWith(credentials);
  const path = upstream.pathOf(request.path);
  const startedMs = clock.now();
  trace.request?.(request.method, upstream.origin + path, headers);
  const connect = upstream.connect.bind(undefined, endpoint);
  const resume = {
    clock,
    renewHeaders: async () => {
      // The session may outlive its first credentials.
      upstream.forgetCredentials();
      return linesWith(await upstream.credentials());
    },
    note: (text: string) => agent.note(text),
  };
  const session = { ...request, path, headers };
  const response = await requestSession(endpoint, session, agent, { signal, connect, resume });
  const { status, statusMessage, rawHeaders } = response;
  trace.response?.(status, statusMessage, rawHeaders, clock.now() - startedMs);
  return response;
}

function linesFor(
  clientHeaders: HeaderList,
  request: UpstreamRequest,
  credentials: HeaderList,
  { authority }: AgentUpstream,
): HeaderList {
  // Takes impersonation from the client's request; the gateway's own has none.
  const asked = clientHeaders.filter(([name]) => name.toLowerCase().startsWith("impersonate-"));
  const lines = [...request.headers, ...asked, ...reasonLines(clientHeaders)];
  return inUsersName(lines, { credentials, authority });
}

function isSame(before: HeaderList, after: HeaderList): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}
