import { goQuote } from "@sluice/client/internal/api/go-json";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { GRPCAction } from "../../api/probe-objects.ts";
import { formatDuration } from "../../config/number-fields.ts";
import { GRPC_CODE_NAMES } from "../../cri/runtime-error.ts";
import { noteCertificate, openSocket, type ProbeDeadline } from "../probe-deadline.ts";
import {
  DeadlineError,
  ExchangeError,
  failure,
  type ProbeResult,
  success,
  type WireFacts,
} from "../probe-result.ts";
import type { ProbeSocket, SocketTarget } from "../probe-socket.ts";
import { CheckRequest } from "./check-request.ts";
import { checkHealth } from "./health-check.ts";
import type { CheckOutcome, GrpcStatus } from "./unary-answer.ts";

/** gRPC's connection back-off: one second, then 1.6 times as long each time, plus or minus a fifth. */
const FIRST_BACKOFF_MS = 1_000;
const BACKOFF_FACTOR = 1.6;
const BACKOFF_JITTER = 0.2;

interface GrpcProbeOptions {
  readonly userAgent: string;
  /** TLS without verification and without a client certificate (KEP-4939). */
  readonly isTls: boolean;
  readonly timeoutMs: number;
  readonly deadline: ProbeDeadline;
}

/**
 * Calls grpc.health.v1.Health/Check. One deadline covers dial and call. Never an error: every
 * outcome is Success or Failure.
 */
export async function probeGrpc(
  action: GRPCAction,
  host: string,
  options: GrpcProbeOptions,
  wire: WireFacts = {},
): Promise<ProbeResult> {
  const { deadline, isTls, timeoutMs, userAgent } = options;
  const request = checkRequestOf(action, host, userAgent, isTls);
  let isConnected = false;
  const onConnected = (): void => {
    isConnected = true;
    wire.protocol = isTls ? "h2" : "h2c";
  };
  const onUnconnected = (reason: string): void => {
    wire.lastAttempt = reason;
  };
  try {
    // Retries until the deadline, as grpc-go's blocking dial does: it cannot tell a refused
    // connection, a wrong protocol and a missing certificate apart.
    for (let backoffMs = FIRST_BACKOFF_MS; ; backoffMs *= BACKOFF_FACTOR) {
      const startMs = performance.now();
      const socket = await connect(
        { host, port: action.port, alpn: isTls ? ["h2"] : undefined },
        deadline,
        wire,
      );
      const outcome =
        socket && (await checkHealth(socket, request, deadline, { onConnected, onUnconnected }));
      if (outcome !== undefined) return verdictOf(outcome, timeoutMs, wire);
      const spreadMs = backoffMs * (1 + BACKOFF_JITTER * (2 * Math.random() - 1));
      await deadline.sleep(Math.max(0, startMs + spreadMs - performance.now()));
    }
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    if (isConnected) return failure(lateText(timeoutMs), wire);
    return failure(unconnectedText(request.authority, timeoutMs, deadline), wire);
  }
}

/** Undefined if the connection failed. Rejects with DeadlineError. */
async function connect(
  target: SocketTarget,
  deadline: ProbeDeadline,
  wire: WireFacts,
): Promise<ProbeSocket | undefined> {
  try {
    const socket = await openSocket(target, deadline);
    wire.protocol = "tcp";
    if (target.alpn === undefined) return socket;
    noteCertificate(socket, wire);
    if (socket.alpnProtocol === "h2") return socket;
    socket.destroy();
    wire.lastAttempt = "no h2 by ALPN";
  } catch (error) {
    if (!(error instanceof ExchangeError)) throw error;
    wire.lastAttempt = error.message;
  }
  return undefined;
}

function unconnectedText(address: string, timeoutMs: number, { reason }: ProbeDeadline): string {
  if (reason === "cancelled") {
    return `error: failed to connect service at ${goQuote(address)}: context canceled`;
  }
  const within = `within ${formatDuration(timeoutMs)}: context deadline exceeded`;
  return `timeout: failed to connect service ${goQuote(address)} ${within}`;
}

function verdictOf(outcome: CheckOutcome, timeoutMs: number, wire: WireFacts): ProbeResult {
  if (outcome.servingStatus === undefined) {
    wire.grpcStatus = grpcCodeName(outcome.status.code);
    return failure(failureText(outcome.status, timeoutMs), wire);
  }
  wire.grpcStatus = "OK";
  if (outcome.servingStatus === "SERVING") return success("service healthy", wire);
  return failure(`service unhealthy (responded with ${goQuote(outcome.servingStatus)})`, wire);
}

function failureText(status: GrpcStatus, timeoutMs: number): string {
  switch (grpcCodeName(status.code)) {
    case "Unimplemented":
      return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${status.message}`;
    case "DeadlineExceeded":
      return lateText(timeoutMs);
    default:
      return `error: health rpc probe failed: ${grpcErrorText(status)}`;
  }
}

function lateText(timeoutMs: number): string {
  return `timeout: health rpc did not complete within ${formatDuration(timeoutMs)}`;
}

interface PreparedRequest {
  readonly host: string;
  readonly userAgent: string;
  readonly isTls: boolean;
  readonly request: CheckRequest;
}

/** Keyed by action: an action belongs to one pod and never changes. */
const prepared = new WeakMap<GRPCAction, PreparedRequest>();

function checkRequestOf(action: GRPCAction, host: string, userAgent: string, isTls: boolean): CheckRequest {
  const known = prepared.get(action);
  if (known?.host === host && known.userAgent === userAgent && known.isTls === isTls) return known.request;
  const authority = joinHostPort(host, action.port);
  const request = new CheckRequest(isTls ? "https" : "http", authority, action.service ?? "", userAgent);
  prepared.set(action, { host, userAgent, isTls, request });
  return request;
}

/** `rpc error: code = NotFound desc = unknown service`. */
function grpcErrorText({ code, message }: GrpcStatus): string {
  return `rpc error: code = ${grpcCodeName(code)} desc = ${message}`;
}

function grpcCodeName(code: number): string {
  return GRPC_CODE_NAMES[code] ?? `Code(${code})`;
}
