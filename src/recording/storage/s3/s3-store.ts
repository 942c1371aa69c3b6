import { createHash } from "node:crypto";
import { type IncomingHttpHeaders, Agent as PlainAgent, request as requestPlainly } from "node:http";
import { Agent, request } from "node:https";
import { setTimeout as wait } from "node:timers/promises";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { notInstalled } from "@sluice/client/internal/config/optional-package";
import type { RecordingStore } from "../../../config/sections/recording.ts";
import { RecordingFileError } from "../../reading/recording-file-error.ts";
import { errorCodeOf, S3Error } from "./s3-answer.ts";

/** Attempts of one request while the store fails temporarily. Past it the upload is tried again later. */
const MAX_ATTEMPTS = 4;
const FIRST_PAUSE_MS = 100;
/** The longest answer that is read; a list of a thousand uploads is 0.5 MiB. Past it the request fails. */
const MAX_S3_ANSWER_BYTES = 4 * 1024 * 1024;
/** A smaller difference of clocks does not explain a refusal: S3 allows 15 minutes. */
const LEAST_SKEW_MS = 5 * 60_000;
/** Difference between the store's clock and ours. Past it ours is used: a proxy's may be absurd. */
const MAX_SKEW_MS = 24 * 60 * 60_000;

interface S3Call {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** "" means the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Names the request in error messages: "the upload". */
  readonly doing: string;
}

export interface S3Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

type Signer = typeof import("aws4fetch").AwsV4Signer;

interface StoreOptions {
  readonly settings: RecordingStore;
  /** Aborts all requests. */
  readonly signal: AbortSignal;
  /** Authorities that may sign the store's certificate, PEM; undefined: those of Node.js. May change. */
  readonly trust: { readonly ca: string | undefined };
  readonly maxSockets?: number;
}

/** Sends signed requests to a bucket, with a time limit, and repeats them after temporary failures. */
export class S3Store {
  readonly settings: RecordingStore;
  readonly #signer: Signer;
  readonly #signal: AbortSignal;
  readonly #trust: StoreOptions["trust"];
  readonly #maxSockets: number;
  #agent: Agent | PlainAgent;
  /** The authorities of `#agent`. */
  #ca: string | undefined;
  /** How far the store's clock is ahead of this one. */
  #skewMs = 0;

  private constructor(signer: Signer, { settings, signal, trust, maxSockets = 2 }: StoreOptions) {
    this.settings = settings;
    this.#signer = signer;
    this.#signal = signal;
    this.#trust = trust;
    this.#maxSockets = maxSockets;
    this.#ca = trust.ca;
    this.#agent = this.#newAgent();
  }

  /** Rejects with NotInstalledError. */
  static async open(options: StoreOptions): Promise<S3Store> {
    const { AwsV4Signer } = await import("aws4fetch").catch(notInstalled("aws4fetch", "recording.s3"));
    return new S3Store(AwsV4Signer, options);
  }

  /** Rejects with S3Error if the status is not 2xx, or if the body is an error. */
  async call(call: S3Call): Promise<S3Answer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(call);
      } catch (error) {
        const isLast = attempt >= MAX_ATTEMPTS || this.#signal.aborted;
        if (isLast || !(error instanceof S3Error && error.isTransient)) throw error;
        await wait(FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random()), undefined, {
          signal: this.#signal,
        });
      }
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #newAgent(): Agent | PlainAgent {
    const options = { keepAlive: true, maxSockets: this.#maxSockets };
    return this.settings.endpoint.startsWith("http:")
      ? new PlainAgent(options)
      : new Agent({ ...options, ...(this.#ca !== undefined && { ca: this.#ca }) });
  }

  /** The connections that trust the current authorities. Running requests keep theirs. */
  #currentAgent(): Agent | PlainAgent {
    if (this.#trust.ca === this.#ca) return this.#agent;
    const before = this.#agent;
    before.maxFreeSockets = 0;
    for (const socket of Object.values(before.freeSockets).flat()) socket?.destroy();
    this.#ca = this.#trust.ca;
    this.#agent = this.#newAgent();
    return this.#agent;
  }

  async #attempt(call: S3Call, maySetClock = true): Promise<S3Answer> {
    const sentMs = Date.now();
    const answer = await this.#send(await this.#signed(call), call);
    const { status, headers, body } = answer;
    // A part of an object may have any text.
    const code = call.method === "HEAD" || status === 206 ? undefined : errorCodeOf(body);
    if (status >= 200 && status < 300 && code === undefined) return answer;
    if (status === 403 && maySetClock && this.#setClock(Date.parse(headers.date ?? "") - sentMs))
      return await this.#attempt(call, false);
    // S3 may send status 200 before it knows that the request fails.
    const isInBody = status < 300;
    throw new S3Error(code ?? STATUS_CODES[status] ?? "without a code of S3", status, call.doing, isInBody);
  }

  /** Adopts the store's clock. Returns false if clocks do not explain the refusal. */
  #setClock(skewMs: number): boolean {
    const isOther = Math.abs(skewMs - this.#skewMs) > LEAST_SKEW_MS && Math.abs(skewMs) <= MAX_SKEW_MS;
    if (isOther) this.#skewMs = skewMs;
    return isOther;
  }

  async #signed({ method, key, query = {}, headers = {}, body }: S3Call) {
    const { region, credentialsFile } = this.settings;
    const credentials = await readS3Credentials(credentialsFile, process.env);
    const url = new URL(this.#urlOf(key));
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const digest = createHash("sha256")
      .update(body ?? "")
      .digest("hex");
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    const signer = new this.#signer({
      method,
      url: url.href,
      headers: { ...headers, "x-amz-content-sha256": digest },
      service: "s3",
      region,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
      datetime: new Date(Date.now() + this.#skewMs).toISOString().replace(/[:-]|\.\d{3}/g, ""),
    });
    return await signer.sign();
  }

  #urlOf(key: string): string {
    const { endpoint, bucket, pathStyle } = this.settings;
    const { protocol, host, pathname } = new URL(endpoint);
    const base = pathname.replace(/\/$/, "");
    const name = key.split("/").map(encodeURIComponent).join("/");
    return pathStyle
      ? `${protocol}//${host}${base}/${bucket}/${name}`
      : `${protocol}//${bucket}.${host}${base}/${name}`;
  }

  #send(
    { url, headers }: { url: URL; headers: Headers },
    { method, body, doing }: S3Call,
  ): Promise<S3Answer> {
    const send = url.protocol === "http:" ? requestPlainly : request;
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        clearTimeout(timer);
        reject(new S3Error(error.code ?? error.message, 0, doing));
      };
      const sent = send(
        url,
        {
          method,
          agent: this.#currentAgent(),
          signal: this.#signal,
          headers: { ...Object.fromEntries(headers), "content-length": body?.byteLength ?? 0 },
        },
        (response) => {
          const parts: Buffer[] = [];
          let bytes = 0;
          response.on("data", (part: Buffer) => {
            bytes += part.byteLength;
            if (bytes > MAX_S3_ANSWER_BYTES) response.destroy(new Error("the answer is too long"));
            else parts.push(part);
          });
          response.on("error", fail);
          response.on("end", () => {
            clearTimeout(timer);
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(parts),
            });
          });
        },
      );
      const timer = setTimeout(() => sent.destroy(new Error("timeout")), this.settings.requestTimeoutMs);
      sent.on("error", fail);
      sent.end(body);
    });
  }
}

/** Codes for answers without an S3 error body: those to HEAD, and those of proxies. */
const STATUS_CODES: Readonly<Record<number, string>> = {
  301: "PermanentRedirect",
  307: "TemporaryRedirect",
  403: "AccessDenied",
  404: "NotFound",
  412: "PreconditionFailed",
};

/**
 * Reads the credentials for each request, so that they can rotate: from `file` in AWS's format, or else
 * from the environment. Rejects with RecordingFileError, which never quotes the file.
 */
export async function readS3Credentials(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<S3Credentials> {
  if (file === undefined)
    return credentialsOf(
      {
        aws_access_key_id: environment.AWS_ACCESS_KEY_ID,
        aws_secret_access_key: environment.AWS_SECRET_ACCESS_KEY,
        aws_session_token: environment.AWS_SESSION_TOKEN,
      },
      "the environment has no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
  let text: string;
  try {
    text = (await readUpTo(file)).toString();
  } catch (error) {
    throw RecordingFileError.of(error, file);
  }
  return credentialsOf(
    defaultProfileOf(text),
    `${file} has no aws_access_key_id and aws_secret_access_key in [default]`,
  );
}

/** The values in `[default]`, or in a file without profiles. */
function defaultProfileOf(text: string): Readonly<Record<string, string>> {
  const values: Record<string, string> = {};
  let profile = "default";
  for (const line of text.split("\n").map((each) => each.trim())) {
    if (line.startsWith("[") && line.endsWith("]")) profile = line.slice(1, -1).trim();
    const end = line.indexOf("=");
    if (profile !== "default" || end === -1 || line.startsWith("#") || line.startsWith(";")) continue;
    values[line.slice(0, end).trim().toLowerCase()] = line.slice(end + 1).trim();
  }
  return values;
}

function credentialsOf(values: Readonly<Record<string, string | undefined>>, missing: string): S3Credentials {
  const accessKeyId = values.aws_access_key_id ?? "";
  const secretAccessKey = values.aws_secret_access_key ?? "";
  if (accessKeyId === "" || secretAccessKey === "") throw new RecordingFileError(missing);
  const sessionToken = values.aws_session_token || undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
}
