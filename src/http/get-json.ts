import { request as sendRequest } from "node:https";
import { type JsonAnswer, readJsonAnswer } from "./post-json.ts";

export interface JsonGetOptions {
  /** Authorities that may have signed the server's certificate, PEM; absent: the ones Node ships. */
  readonly ca?: string | undefined;
  /** From the call to the last byte of the answer. */
  readonly timeoutMs: number;
}

/**
 * Fetches a JSON document over https on a connection of its own; the certificate is verified, no redirect is followed.
 * Rejects when there is no whole answer in time or it is longer than MAX_JSON_ANSWER_BYTES.
 */
export function getJson(url: string, { ca, timeoutMs }: JsonGetOptions): Promise<JsonAnswer> {
  return new Promise((resolve, reject) => {
    const request = sendRequest(url, {
      agent: false,
      minVersion: "TLSv1.2",
      headers: { Accept: "application/json" },
      ...(ca !== undefined && { ca }),
    });
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    request.on("close", () => clearTimeout(timer));
    request.on("error", reject);
    request.on("response", (response) => readJsonAnswer(response).then(resolve, reject));
    request.end();
  });
}
