import {
  type Authorization,
  type AuthorizationMode,
  type AuthorizationWebhook,
  checkAuthorizationMode,
  defaultWebhookTimes,
  repeatedMode,
  WEBHOOK_NOT_CONFIGURED,
} from "./authorization.ts";
import { choiceFlag, durationFlag, type FlagReader } from "./flag-values.ts";
import { REVIEW_VERSIONS } from "./webhook-target.ts";

/** kube-apiserver's flags about what a caller may do. */
export const AUTHORIZATION_FLAGS = [
  "authorization-mode",
  "authorization-webhook-config-file",
  "authorization-webhook-version",
  "authorization-webhook-cache-authorized-ttl",
  "authorization-webhook-cache-unauthorized-ttl",
] as const;
export type AuthorizationFlag = (typeof AUTHORIZATION_FLAGS)[number];

type Flags = FlagReader<AuthorizationFlag>;

export function mergeAuthorizationFlags(file: Authorization, flags: Flags): Authorization {
  const flag = "authorization-mode";
  const modes = flags.list(flag, file.modes, checkAuthorizationMode) as AuthorizationMode[];
  const repeated = repeatedMode(modes);
  if (repeated !== undefined) flags.refuse(flag, repeated);
  const webhook = mergeWebhook(file.webhook, flags);
  if (modes.includes("Webhook") && webhook === undefined) flags.refuse(flag, WEBHOOK_NOT_CONFIGURED);
  if (!modes.includes("Webhook") && flags.text("authorization-webhook-config-file") !== undefined) {
    flags.refuse("authorization-webhook-config-file", "cannot be specified without mode Webhook");
  }
  return { modes, webhook };
}

function mergeWebhook(
  file: AuthorizationWebhook | undefined,
  flags: Flags,
): AuthorizationWebhook | undefined {
  const kubeconfig = flags.file("authorization-webhook-config-file", "webhook kubeconfig");
  const version = choiceFlag("authorization-webhook-version", flags, REVIEW_VERSIONS);
  const authorizedTtlMs = durationFlag("authorization-webhook-cache-authorized-ttl", flags);
  const unauthorizedTtlMs = durationFlag("authorization-webhook-cache-unauthorized-ttl", flags);
  const base: AuthorizationWebhook | undefined =
    kubeconfig === undefined
      ? file
      : {
          ...(file ?? defaultWebhookTimes),
          target: { kind: "kubeconfig", file: kubeconfig },
          version: "v1beta1",
        };
  if (base === undefined) {
    for (const name of AUTHORIZATION_FLAGS.slice(2)) {
      if (flags.text(name) !== undefined) flags.refuse(name, "needs --authorization-webhook-config-file too");
    }
    return undefined;
  }
  return {
    ...base,
    version: version ?? base.version,
    authorizedTtlMs: authorizedTtlMs ?? base.authorizedTtlMs,
    unauthorizedTtlMs: unauthorizedTtlMs ?? base.unauthorizedTtlMs,
  };
}
