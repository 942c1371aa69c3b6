import { readFile } from "node:fs/promises";
import { type Authorizer, alwaysAllow, alwaysDeny, superusers } from "./access/authz/authorizer.ts";
import { AuthorizerChain } from "./access/authz/authorizer-chain.ts";
import { RbacAuthorizer } from "./access/authz/rbac/rbac-authorizer.ts";
import { type RbacObjects, RbacSource } from "./access/authz/rbac/rbac-source.ts";
import { type AskWebhook, WebhookAuthorizer } from "./access/authz/webhook/webhook-authorizer.ts";
import type { Authorization, AuthorizationMode, AuthorizationWebhook } from "./config/authorization.ts";
import type { Logger } from "./observability/logger.ts";
import { HttpUpstream } from "./upstream/http-upstream.ts";
import { postJson } from "./upstream/post-json.ts";
import { UpstreamTls } from "./upstream/tls.ts";

const REVIEW_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

export interface BuiltAuthorizer {
  readonly authorizer: Authorizer;
  /** Lets go of connections and subscriptions. */
  stop(): void;
}

/** The chain that the configuration's modes name, superusers first. */
export async function buildAuthorizer(
  { modes, webhook }: Authorization,
  objects: RbacObjects,
  logger: Logger,
): Promise<BuiltAuthorizer> {
  const stops: (() => void)[] = [];
  const build: Readonly<Record<AuthorizationMode, () => Authorizer | Promise<Authorizer>>> = {
    AlwaysAllow: () => alwaysAllow,
    AlwaysDeny: () => alwaysDeny,
    RBAC: () => {
      const source = new RbacSource(objects);
      stops.push(() => source.stop());
      return new RbacAuthorizer(() => source.current);
    },
    Webhook: async () => {
      // The configuration's reader has seen to it that the mode has its section.
      if (webhook === undefined) throw new Error("mode Webhook has no configuration");
      const upstream = await webhookUpstream(webhook);
      stops.push(() => upstream.close());
      return new WebhookAuthorizer(asker(webhook, upstream), {
        ...webhook,
        nowMs: () => performance.now(),
        onFailure: ({ message }) => logger.error({ problem: message }, "the authorization webhook failed"),
      });
    },
  };
  const authorizers: Authorizer[] = [superusers];
  for (const mode of modes) authorizers.push(await build[mode]());
  return {
    authorizer: new AuthorizerChain(authorizers),
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}

async function webhookUpstream(webhook: AuthorizationWebhook): Promise<HttpUpstream> {
  const { protocol, hostname, port } = new URL(webhook.url);
  const isTls = protocol === "https:";
  const read = async (file: string | undefined) => (file === undefined ? undefined : await readFile(file));
  const tls = new UpstreamTls({
    ca: await read(webhook.certificateAuthorityFile),
    certificate: await read(webhook.clientCertificateFile),
    key: await read(webhook.clientKeyFile),
    insecureSkipVerify: webhook.insecureSkipTLSVerify,
  });
  return new HttpUpstream({
    endpoint: {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? (isTls ? 443 : 80) : Number(port),
      tls: isTls ? tls : undefined,
    },
    dialTimeoutMs: webhook.timeoutMs,
  });
}

function asker({ url, tokenFile, timeoutMs }: AuthorizationWebhook, upstream: HttpUpstream): AskWebhook {
  const { pathname, search } = new URL(url);
  const path = `${pathname === "/" ? REVIEW_PATH : pathname}${search}`;
  return async (body) => {
    // Read each time: Kubernetes replaces service account tokens on disk, and answers are cached anyway.
    const token = tokenFile === undefined ? undefined : (await readFile(tokenFile, "utf8")).trim();
    return postJson(upstream, { path, body, bearerToken: token, timeoutMs });
  };
}
