import type { Writable } from "node:stream";
import { goJson } from "@sluice/client/internal/api/go-json";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import {
  flatHeaders,
  type HeaderLines,
  type HeaderList,
  headerListOf,
  headerValue,
} from "@sluice/client/internal/http/header-list";
import { withSessionsGroup } from "../../session-api/discovery.ts";
import { withSessionsDocument } from "../../session-api/open-api.ts";

/**
 * Bytes of an API server's list of all groups; 200 KiB with many resources. Past it the list is
 * passed on unchanged.
 */
const MAX_DISCOVERY_BYTES = 8 * 1024 * 1024;

const JSON_CLAUSE = /^\s*(?:application\/(?:json|\*)|\*\/\*)\s*(?:;|$)/i;
/**
 * The tag of an unmerged answer must not match the merged one's, and compressed JSON cannot be
 * merged.
 */
const UNSENT = /^(?:accept|accept-encoding|if-none-match)$/i;

/** The clauses of an Accept header that mean JSON; undefined if it has none. */
export function jsonClausesOf(accept: string): string | undefined {
  if (accept.trim() === "") return "application/json";
  const clauses = accept.split(",").filter((clause) => JSON_CLAUSE.test(clause));
  return clauses.length === 0 ? undefined : clauses.join(",");
}

interface Merging {
  /** The request's headers, which ask for plain JSON. */
  readonly headers: HeaderList;
  /** The client, whose answer also contains the group of sessions. */
  readonly merging: HttpDownstream;
}

/** True for the lists of groups and of OpenAPI documents, to which the sessions' are added. */
export function isDiscovery({ method, url }: { readonly method: string; readonly url: URL }): boolean {
  return method === "GET" && (url.pathname === "/apis" || url.pathname === "/openapi/v3");
}

/** Adds the sessions' group to the answer that `downstream` gets for one of those lists. */
export function withGroupAdded(downstream: HttpDownstream, accept: string): Merging {
  const headers: HeaderList = [
    ...downstream.headers.filter(([name]) => !UNSENT.test(name)),
    ["Accept", accept],
  ];
  const answer = new HeldAnswer(downstream);
  const own: Partial<Record<keyof HttpDownstream, unknown>> = {
    headers,
    respond: answer.respond,
    write: answer.write,
    respondWhole: answer.respondWhole,
    finish: answer.finish,
  };
  const merging = new Proxy(downstream, {
    get(target, key): unknown {
      if (!answer.isPassedOn || key === "headers") {
        if (key === "hasResponded") return answer.hasBegun || target.hasResponded;
        if (Object.hasOwn(own, key)) return own[key as keyof HttpDownstream];
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  });
  return { headers, merging };
}

/** The answer, held until it is complete. */
class HeldAnswer {
  hasBegun = false;
  /** True once the client has everything that arrived, and receives the rest directly. */
  isPassedOn = false;
  readonly #downstream: HttpDownstream;
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #head: [status: number, statusMessage: string, headers: HeaderLines] = [200, "OK", []];
  /** The client's sink, once the client receives the answer directly. */
  #sink: Writable | undefined;

  constructor(downstream: HttpDownstream) {
    this.#downstream = downstream;
  }

  readonly respond: HttpDownstream["respond"] = (
    status,
    statusMessage,
    headers,
    beginning = [],
    mayHaveTrailers = true,
  ) => {
    if (status !== 200 || !isJson(headers)) {
      this.isPassedOn = true;
      return this.#downstream.respond(status, statusMessage, headers, beginning, mayHaveTrailers);
    }
    this.hasBegun = true;
    this.#head = [status, statusMessage, headers];
    this.write(beginning);
    return this.#drain as Writable;
  };

  readonly #drain: Pick<Writable, "once" | "writableNeedDrain"> = heldSink(() => this.#sink);

  readonly write = (parts: readonly Uint8Array[]): void => {
    // The caller may reuse the parts' memory, so they are copied; a read may have 10,000 parts.
    const copy = Buffer.concat(parts);
    this.#parts.push(copy);
    this.#bytes += copy.byteLength;
    if (this.#bytes <= MAX_DISCOVERY_BYTES) return;
    this.isPassedOn = true;
    const [status, statusMessage, headers] = this.#head;
    this.#sink = this.#downstream.respond(status, statusMessage, headers, this.#parts.splice(0));
  };

  readonly respondWhole: HttpDownstream["respondWhole"] = (
    status,
    statusMessage,
    headers,
    body,
    trailers,
  ) => {
    this.isPassedOn = true;
    const merged = status === 200 && isJson(headers) ? mergedWith(Buffer.concat(body)) : undefined;
    if (merged === undefined)
      return this.#downstream.respondWhole(status, statusMessage, headers, body, trailers);
    const lines = headerListOf(flatHeaders(headers)).filter(
      ([name]) => !/^(?:content-length|transfer-encoding|etag)$/i.test(name),
    );
    const length = ["Content-Length", String(merged.byteLength)] as const;
    this.#downstream.respondWhole(status, statusMessage, [...lines, length], [merged], []);
  };

  readonly finish = (trailers: HeaderList): void => {
    const [status, statusMessage, headers] = this.#head;
    this.respondWhole(status, statusMessage, headers, this.#parts, trailers);
  };
}

/** The part of a Writable that an exchange uses. Until the client has a sink, nothing waits. */
function heldSink(sink: () => Writable | undefined): Pick<Writable, "once" | "writableNeedDrain"> {
  return {
    get writableNeedDrain() {
      return sink()?.writableNeedDrain ?? false;
    },
    once: ((event: string, listener: () => void) => sink()?.once(event, listener)) as Writable["once"],
  };
}

function isJson(lines: HeaderLines): boolean {
  const headers = headerListOf(flatHeaders(lines));
  const type = headerValue(headers, "content-type") ?? "";
  return JSON_CLAUSE.test(type) && (headerValue(headers, "content-encoding") ?? "identity") === "identity";
}

function mergedWith(body: Buffer): Buffer | undefined {
  try {
    const answer: unknown = JSON.parse(body.toString());
    const merged = withSessionsGroup(answer) ?? withSessionsDocument(answer);
    return merged && Buffer.from(`${goJson(merged)}\n`);
  } catch {
    return undefined;
  }
}
