import { request as sendRequest } from "node:https";
import { USER_AGENT } from "../../config/version.ts";
import { type JsonAnswer, readJsonAnswer } from "./post-json.ts";

export interface JsonGetOptions {
  /** Authorities that may have signed the server's certificate, PEM; absent: those that Node ships. */
  readonly ca?: string | undefined;
  /** Limit from the call to the answer's last byte. */
  readonly timeoutMs: number;
}

export interface FormPostOptions extends JsonGetOptions {
  /** The Authorization header. Errors never contain it. */
  readonly authorization?: string;
}

/**
 * Fetches a JSON document over verified https on its own connection, without redirects. Rejects if the
 * answer is late, incomplete, or larger than MAX_JSON_ANSWER_BYTES.
 */
export function getJson(url: string, options: JsonGetOptions): Promise<JsonAnswer> {
  return exchange(url, options, {}, undefined);
}

/** Posts a form and reads JSON as `getJson` does. */
export function postForm(
  url: string,
  form: Readonly<Record<string, string>>,
  options: FormPostOptions,
): Promise<JsonAnswer> {
  const headers = {
    "Content-Type": "application/x-www-form-urlencoded",
    ...(options.authorization !== undefined && { Authorization: options.authorization }),
  };
  return exchange(url, options, headers, new URLSearchParams(form).toString());
}

function exchange(
  url: string,
  { ca, timeoutMs }: JsonGetOptions,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
): Promise<JsonAnswer> {
  return new Promise((resolve, reject) => {
    const request = sendRequest(url, {
      agent: false,
      method: body === undefined ? "GET" : "POST",
      minVersion: "TLSv1.2",
      headers: { Accept: "application/json", "User-Agent": USER_AGENT, ...headers },
      ...(ca !== undefined && { ca }),
    });
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    request.on("close", () => clearTimeout(timer));
    request.on("error", reject);
    request.on("response", (response) => void readJsonAnswer(response).then(resolve, reject));
    request.end(body);
  });
}
