import type { Authorization, AuthorizationMode } from "../../config/sections/authorization.ts";
import type { Component } from "../../lifecycle/component.ts";
import { Started } from "../../lifecycle/started.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Logger } from "../../observability/logger.ts";
import { loggedReviews } from "../review-log.ts";
import { webhookClient } from "../webhook-client.ts";
import { type Authorizer, alwaysAllow, alwaysDeny, superusers } from "./authorizer.ts";
import { AuthorizerChain } from "./authorizer-chain.ts";
import { RbacAuthorizer } from "./rbac/rbac-authorizer.ts";
import { type RbacObjects, RbacSource } from "./rbac/rbac-source.ts";
import { WebhookAuthorizer } from "./webhook/webhook-authorizer.ts";

export interface BuiltAuthorizer extends Component {
  readonly authorizer: Authorizer;
  /** Releases connections and subscriptions. */
  stop(): Promise<void>;
}

/** Builds the chain of the configured modes, superusers first. */
export async function buildAuthorizer(
  { modes, webhook }: Authorization,
  objects: RbacObjects,
  logger: Logger,
  upstreams: UpstreamTlsFiles,
): Promise<BuiltAuthorizer> {
  return await Started.building(async (started) => {
    const build: Readonly<Record<AuthorizationMode, () => Authorizer | Promise<Authorizer>>> = {
      AlwaysAllow: () => alwaysAllow,
      AlwaysDeny: () => alwaysDeny,
      RBAC: () => {
        const source = started.add(new RbacSource(objects), (it) => it.stop());
        return new RbacAuthorizer(() => source.current);
      },
      Webhook: async () => {
        // The configuration's reader ensures that the mode has its section.
        if (webhook === undefined) throw new Error("mode Webhook has no configuration");
        const { target, version, timeoutMs } = webhook;
        const defaultPath = `/apis/authorization.k8s.io/${version}/subjectaccessreviews`;
        const client = started.add(
          await webhookClient(target, {
            defaultPath,
            timeoutMs,
            use: "authorizationWebhook",
            upstreams,
          }),
          (it) => it.stop(),
        );
        const reviews = loggedReviews(client.ask, {
          permission: "create subjectaccessreviews.authorization.k8s.io (authorization.mode: Webhook)",
          failed: "the authorization webhook failed",
          logger,
        });
        return new WebhookAuthorizer(reviews.ask, {
          ...webhook,
          nowMs: () => performance.now(),
          onFailure: reviews.onFailure,
        });
      },
    };
    const authorizers: Authorizer[] = [superusers];
    for (const mode of modes) authorizers.push(await build[mode]());
    return {
      authorizer: new AuthorizerChain(authorizers),
      stop: () => started.stop(),
    };
  });
}
