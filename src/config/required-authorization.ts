import type { Authentication } from "./authentication.ts";
import type { Section } from "./section.ts";

const MESSAGE =
  "is required where callers are authenticated: [RBAC] or [Webhook]; [AlwaysAllow] lets each of them do everything";

interface AuthenticatedSections {
  readonly authentication: Authentication;
  readonly listeners: {
    readonly kubelet?:
      | { readonly authentication?: Authentication | undefined; readonly authorization?: object | undefined }
      | undefined;
  };
}

/** What callers may do is never left to a default: a file that knows callers says it, for each listener with authenticators of its own. */
export function requireAuthorization(
  { authentication, listeners }: AuthenticatedSections,
  root: Section,
): void {
  const { kubelet } = listeners;
  const ofKubelet = kubelet?.authentication ?? authentication;
  const usesShared =
    knowsCallers(authentication) || (kubelet && !kubelet.authorization && knowsCallers(ofKubelet));
  const shared = root.section("authorization");
  if (usesShared && !shared.has("mode")) shared.problem("mode", MESSAGE);
  if (!kubelet?.authorization || !knowsCallers(ofKubelet)) return;
  const own = root.section("listeners").section("kubelet").section("authorization");
  if (!own.has("mode")) own.problem("mode", MESSAGE);
}

/** Whether any request may have a user; `system:anonymous` is one. */
function knowsCallers({
  anonymous,
  clientCAFile,
  oidc,
  requestHeader,
  tokenAuthFile,
  tokenReview,
}: Authentication): boolean {
  const methods = [clientCAFile, oidc, requestHeader, tokenAuthFile, tokenReview];
  return anonymous.enabled || methods.some((method) => method !== undefined);
}
