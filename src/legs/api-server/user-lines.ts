import type { HeaderLine, HeaderList } from "@sluice/client/internal/http/header-list";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { ApiServerUpstream } from "../../kubernetes/api-server-upstream.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import { impersonationHeaders } from "./impersonation-headers.ts";

/**
 * The user as impersonation headers, plus our own credentials, for a request without the caller's
 * identity headers. Throws StatusError 503 without credentials.
 */
export async function impersonationLines(
  user: UserInfo,
  apiServer: ApiServerUpstream,
  gateway: Pick<GatewayContext, "logger">,
): Promise<HeaderLine[]> {
  const own = await ownLines(apiServer.ownCredentials, gateway);
  return [...impersonationHeaders(user, apiServer), ...own];
}

/**
 * Authorization only: the kubeconfig's own impersonation would conflict with the caller's. Failures
 * are logged but not shown to the caller.
 */
async function ownLines(
  credentials: ApiServerUpstream["ownCredentials"],
  { logger }: Pick<GatewayContext, "logger">,
): Promise<HeaderList> {
  try {
    const lines = (await credentials?.headers()) ?? [];
    return lines.filter(([name]) => name === "Authorization");
  } catch (error) {
    logger.error({ error }, "there are no credentials for the API server");
    throw WIRE_ERRORS["no-credentials"].forwarding();
  }
}
