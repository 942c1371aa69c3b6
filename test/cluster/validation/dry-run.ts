import { Agent, request } from "node:https";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import type { ValidationAnswer } from "../../support/validation-texts.ts";

/** None of the cluster's own objects are there: those of the same name would be refused for it. */
const NAMESPACE = "kube-public";
const TIMEOUT_MS = 30_000;

/** Where an object of a kind is posted as a dry run with strict field validation. */
export function dryRunPath(kind: string): string {
  const { apiVersion = "", resource = "", isNamespaced = false } = strategyOf(kind) ?? {};
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const collection = `${group}${isNamespaced ? `/namespaces/${NAMESPACE}` : ""}/${resource}`;
  return `${collection}?dryRun=All&fieldValidation=Strict`;
}

/** Posts many dry runs over a few connections. */
export class DryRuns {
  readonly #agent: Agent;
  readonly #url: string;
  readonly #token: string;

  constructor({ url, ca, token }: { readonly url: string; readonly ca: string; readonly token: string }) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: 8, ca });
    this.#url = url;
    this.#token = token;
  }

  /** Rejects where the API server does not answer in 30 s. */
  post(kind: string, object: object): Promise<ValidationAnswer> {
    const body = JSON.stringify(object);
    return new Promise((resolve, reject) => {
      const sent = request(
        new URL(dryRunPath(kind), this.#url),
        {
          method: "POST",
          agent: this.#agent,
          timeout: TIMEOUT_MS,
          headers: {
            Authorization: `Bearer ${this.#token}`,
            "Content-Type": "application/json",
            "Content-Length": Buffer.byteLength(body),
          },
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("error", reject);
          response.on("end", () => {
            const code = response.statusCode ?? 0;
            const text = Buffer.concat(parts).toString();
            resolve(code === 201 ? { code } : { ...JSON.parse(text), code });
          });
        },
      );
      sent.on("timeout", () => sent.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`)));
      sent.on("error", reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
