import type { Resumption } from "../../../protocols/resume/index.ts";
import type { UserInfo } from "../../access/authn/authenticator.ts";
import type { GatewayContext } from "../context.ts";
import type { IncomingStreaming } from "../incoming-request.ts";
import type { PendingClient } from "../pending-client.ts";
import { attachToHeld, webSocketKeyOf } from "./attach-to-held.ts";
import { proxyResume } from "./proxy-resume.ts";

/**
 * Resumes a session over this connection, for an authorized user; one of another process is proxied to
 * it. Throws StatusError (`ResumableSessions.claim`, `proxyResume`) and HandshakeRefusal.
 */
export async function resumeSession(
  resumption: Resumption,
  user: UserInfo,
  incoming: IncomingStreaming,
  client: PendingClient,
  gateway: Pick<GatewayContext, "resumable" | "clock" | "limits" | "sessions" | "timeouts">,
): Promise<void> {
  const { resumable } = gateway;
  const elsewhere = resumable?.holder?.otherSocketPathOf(resumption.session);
  if (resumable === undefined || elsewhere === undefined) {
    return attachToHeld(resumption, user, incoming, client, gateway);
  }
  const key = webSocketKeyOf(incoming);
  return proxyResume(elsewhere, resumption, key, user, incoming, client, { ...gateway, resumable });
}
