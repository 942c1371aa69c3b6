import type { Duplex } from "node:stream";
import { StatusError } from "@sluice/client/internal/api/status";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { HeaderLine } from "@sluice/client/internal/http/header-list";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { RuntimeError } from "../../cri/runtime-error.ts";
import { answerAndClose, writeAnswer } from "../../listeners/answer.ts";
import type { ResponseContext } from "../../sessions/resumption/owner-server.ts";

/** The kubelet's value for a runtime with too many pending streams. */
const RETRY_AFTER_SECONDS = 60;

/**
 * Maps a runtime's refusal like the kubelet: 404 for a missing object, 429 with Retry-After, else
 * 500, with the error's text.
 */
export function refusalOfRuntime(error: unknown): unknown {
  if (!(error instanceof RuntimeError)) return error;
  const facts = { error: error.message };
  if (error.code === "NotFound") return WIRE_ERRORS["runtime-not-found"].kubelet(facts);
  if (error.code !== "ResourceExhausted") return WIRE_ERRORS["runtime-failed"].kubelet(facts);
  const { status } = WIRE_ERRORS["runtime-exhausted"].kubelet(facts);
  return new StatusError({
    ...status,
    details: { ...status.details, retryAfterSeconds: RETRY_AFTER_SECONDS },
  });
}

export function writeTextRefusal(downstream: HttpDownstream, refusal: StatusError): void {
  if (downstream.hasResponded) downstream.abort();
  else writeAnswer(downstream, refusal.code, headersOf(refusal), Buffer.from(refusal.message));
}

export function refuseUpgradeInText(socket: Duplex, refusal: StatusError, context: ResponseContext): void {
  answerAndClose(socket, refusal.code, headersOf(refusal), Buffer.from(refusal.message), context);
}

function headersOf({ status }: StatusError): HeaderLine[] {
  const retryAfter = status.details?.retryAfterSeconds;
  // The kubelet writes 401 and 403 by another code path than all others.
  const isOfCaller = status.code === 401 || status.code === 403;
  return [
    ["Content-Type", "text/plain; charset=utf-8"],
    ...(isOfCaller ? [] : [["X-Content-Type-Options", "nosniff"] as const]),
    ...(retryAfter === undefined ? [] : [["Retry-After", String(retryAfter)] as const]),
  ];
}
