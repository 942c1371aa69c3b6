import type { StatusError } from "@sluice/client/internal/api/status";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headerValue } from "@sluice/client/internal/http/header-list";
import { isDeeperThan, MAX_OBJECT_DEPTH } from "../api/is-deeper-than.ts";
import { decodeReview, ProtobufError } from "../api/protobuf/decode-message.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";

/**
 * The size of a SelfSubject review, normally a few hundred bytes; kube-apiserver accepts 3 MiB.
 * Past it: 413.
 */
const MAX_REVIEW_BYTES: number = 64 * 1024;

const JSON_TYPE = "application/json";

/**
 * Reads a client's review, as JSON or Kubernetes' protobuf, limited in bytes and, by `timeoutMs`,
 * in time. Throws StatusError 400, 408, 413 and 415.
 */
export async function readReview(downstream: HttpDownstream, timeoutMs: number): Promise<unknown> {
  const type = mediaTypeOf(downstream, [JSON_TYPE, PROTOBUF_TYPE]);
  return requireShallow(decoded(type, await readBody(downstream, timeoutMs)));
}

/** Reads options as JSON in the same way; undefined for an empty body. */
export async function readJson(downstream: HttpDownstream, timeoutMs: number): Promise<unknown> {
  const body = await readBody(downstream, timeoutMs);
  if (body.byteLength === 0) return undefined;
  return requireShallow(decoded(mediaTypeOf(downstream, [JSON_TYPE]), body));
}

function mediaTypeOf({ headers }: HttpDownstream, types: readonly string[]): string {
  const [type = ""] = (headerValue(headers, "content-type") ?? JSON_TYPE).toLowerCase().split(";");
  if (!types.includes(type.trim())) throw WIRE_ERRORS["media-type"].streaming({ types });
  return type.trim();
}

/** Parts of the review are serialized again, into the answer and into audit events. */
function requireShallow(value: unknown): unknown {
  if (isDeeperThan(value, MAX_OBJECT_DEPTH))
    throw undecodable(`the body is nested deeper than ${MAX_OBJECT_DEPTH} levels`);
  return value;
}

function decoded(type: string, body: Buffer): unknown {
  try {
    return type === JSON_TYPE ? JSON.parse(body.toString("utf8")) : decodeReview(body);
  } catch (error) {
    throw undecodable(error instanceof ProtobufError ? error.message : "the body is no JSON");
  }
}

function undecodable(problem: string): StatusError {
  return WIRE_ERRORS["review-unreadable"].streaming({ problem });
}

/** Leaves a refused body unread; its connection stays open until the answer. */
function readBody({ body }: HttpDownstream, timeoutMs: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const settle = (outcome: () => void): void => {
      clearTimeout(timer);
      body.off("data", take).off("end", end).off("error", cut).off("close", cut).pause();
      outcome();
    };
    const fail = (error: StatusError): void => settle(() => reject(error));
    const cut = (): void => fail(WIRE_ERRORS["body-cut"].streaming());
    const end = (): void => settle(() => resolve(Buffer.concat(chunks)));
    const take = (chunk: Buffer): void => {
      bytes += chunk.byteLength;
      if (bytes > MAX_REVIEW_BYTES)
        fail(WIRE_ERRORS["body-too-large"].streaming({ maxBytes: MAX_REVIEW_BYTES }));
      else chunks.push(chunk);
    };
    const timer = setTimeout(() => fail(WIRE_ERRORS["body-late"].streaming()), timeoutMs);
    // An empty HTTP/2 body may have ended during authentication, and does not end again.
    if (body.readableEnded) end();
    else if (body.destroyed) cut();
    else body.on("data", take).on("end", end).on("error", cut).on("close", cut);
  });
}
