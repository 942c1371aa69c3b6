import { readFile } from "node:fs/promises";
import type { UpstreamTrust } from "./config/upstream-trust.ts";
import { HttpUpstream } from "./upstream/http-upstream.ts";
import { type JsonAnswer, postJson } from "./upstream/post-json.ts";
import { UpstreamTls } from "./upstream/tls.ts";

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
  const { protocol, hostname, port, pathname, search } = new URL(target.url);
  const isTls = protocol === "https:";
  const read = async (file: string | undefined) => (file === undefined ? undefined : await readFile(file));
  const tls = isTls
    ? new UpstreamTls({
        ca: await read(target.certificateAuthorityFile),
        certificate: await read(target.clientCertificateFile),
        key: await read(target.clientKeyFile),
        insecureSkipVerify: target.insecureSkipTLSVerify,
      })
    : undefined;
  const upstream = new HttpUpstream({
    endpoint: {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? (isTls ? 443 : 80) : Number(port),
      tls,
    },
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
