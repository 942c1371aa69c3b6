import { readFile } from "node:fs/promises";
import type { UpstreamTrust } from "./config/upstream-trust.ts";
import { endpointOfUrl } from "./upstream/endpoint-of-url.ts";
import { HttpUpstream } from "./upstream/http-upstream.ts";
import { type JsonAnswer, postJson } from "./upstream/post-json.ts";

export interface WebhookTarget extends UpstreamTrust {
  readonly url: string;
  /** A bearer token for it, read again for every question: Kubernetes replaces service account tokens on disk. */
  readonly tokenFile: string | undefined;
  readonly timeoutMs: number;
}

export interface WebhookClient {
  ask(body: unknown): Promise<JsonAnswer>;
  stop(): void;
}

/** Something that is asked by POSTing JSON. `defaultPath` is what a URL without a path means. */
export async function webhookClient(target: WebhookTarget, defaultPath: string): Promise<WebhookClient> {
  const { pathname, search } = new URL(target.url);
  const upstream = new HttpUpstream({
    endpoint: await endpointOfUrl(target.url, target),
    dialTimeoutMs: target.timeoutMs,
  });
  const path = `${pathname === "/" ? defaultPath : pathname}${search}`;
  const { tokenFile, timeoutMs } = target;
  return {
    ask: async (body) => {
      const bearerToken = tokenFile === undefined ? undefined : (await readFile(tokenFile, "utf8")).trim();
      return postJson(upstream, { path, body, bearerToken, timeoutMs });
    },
    stop: () => upstream.close(),
  };
}
