import { isDeeperThan, MAX_OBJECT_DEPTH } from "../api/is-deeper-than.ts";
import { ProtobufError } from "../api/protobuf/decode-message.ts";
import { decodeReview, PROTOBUF_TYPE } from "../api/protobuf/decode-review.ts";
import { badRequest, requestEntityTooLarge, type StatusError, unsupportedMediaType } from "../api/status.ts";
import { headerValue } from "../http/header-list.ts";
import type { HttpDownstream } from "../http/http-downstream.ts";

/** A review is a few hundred bytes; kube-apiserver takes 3 MiB. */
export const MAX_REVIEW_BYTES: number = 64 * 1024;

const JSON_TYPE = "application/json";

/** The review that a client posts, up to a bound, as JSON or as Kubernetes' protobuf. Throws StatusError 400, 413 and 415. */
export async function readReview(downstream: HttpDownstream): Promise<unknown> {
  const [type = ""] = (headerValue(downstream.headers, "content-type") ?? JSON_TYPE).toLowerCase().split(";");
  if (type.trim() !== JSON_TYPE && type.trim() !== PROTOBUF_TYPE) {
    throw unsupportedMediaType([JSON_TYPE, PROTOBUF_TYPE]);
  }
  const review = decoded(type.trim(), await readBody(downstream));
  // Parts of it are written again, into the answer and into audit events.
  if (isDeeperThan(review, MAX_OBJECT_DEPTH))
    throw undecodable(`the body is nested deeper than ${MAX_OBJECT_DEPTH} levels`);
  return review;
}

function decoded(type: string, body: Buffer): unknown {
  try {
    return type === JSON_TYPE ? JSON.parse(body.toString("utf8")) : decodeReview(body);
  } catch (error) {
    throw undecodable(error instanceof ProtobufError ? error.message : "the body is no JSON");
  }
}

function undecodable(problem: string): StatusError {
  return badRequest(`couldn't get version/kind: ${problem}`);
}

async function readBody({ body }: HttpDownstream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // A body past the bound is left unread, and its connection stands until it has its answer.
  for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_REVIEW_BYTES) throw requestEntityTooLarge(MAX_REVIEW_BYTES);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
