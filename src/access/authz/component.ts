import type { Authorization, AuthorizationMode } from "../../config/authorization.ts";
import type { Component } from "../../observability/component.ts";
import type { Logger } from "../../observability/logger.ts";
import { webhookClient } from "../webhook-client.ts";
import { type Authorizer, alwaysAllow, alwaysDeny, superusers } from "./authorizer.ts";
import { AuthorizerChain } from "./authorizer-chain.ts";
import { RbacAuthorizer } from "./rbac/rbac-authorizer.ts";
import { type RbacObjects, RbacSource } from "./rbac/rbac-source.ts";
import { WebhookAuthorizer } from "./webhook/webhook-authorizer.ts";

export interface BuiltAuthorizer extends Component {
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
      const { target, version, timeoutMs } = webhook;
      const defaultPath = `/apis/authorization.k8s.io/${version}/subjectaccessreviews`;
      const client = await webhookClient(target, { defaultPath, timeoutMs });
      stops.push(client.stop);
      return new WebhookAuthorizer(client.ask, {
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
