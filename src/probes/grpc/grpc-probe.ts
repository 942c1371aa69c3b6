import { goQuote } from "../../api/go-json.ts";
import { formatDuration } from "../../config/duration.ts";
import { joinHostPort } from "../../upstream/go-dial-error.ts";
import { DeadlineError } from "../exchange-error.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import { failure, type ProbeResult, success, type WireFacts } from "../probe-result.ts";
import { connectGrpc, type GrpcConnection } from "./grpc-connection.ts";
import {
  DEADLINE_EXCEEDED,
  type GrpcStatus,
  grpcCodeName,
  grpcErrorText,
  UNIMPLEMENTED,
} from "./grpc-status.ts";
import { type CheckOutcome, checkHealth } from "./health-check.ts";

export interface GrpcProbeTarget {
  readonly host: string;
  readonly port: number;
  readonly service: string;
  /** TLS that verifies nothing and shows no certificate (KEP-4939). */
  readonly isTls: boolean;
}

export interface GrpcProbeOptions {
  readonly userAgent: string;
  readonly timeoutMs: number;
  readonly deadline: ProbeDeadline;
}

/** grpc.health.v1.Health/Check. One deadline over dial and call; never an error: every outcome is Success or Failure. */
export async function probeGrpc(target: GrpcProbeTarget, options: GrpcProbeOptions): Promise<ProbeResult> {
  const { deadline, timeoutMs, userAgent } = options;
  const wire: WireFacts = {};
  const address = joinHostPort(target.host, target.port);
  let connection: GrpcConnection;
  try {
    connection = await connectGrpc(target, deadline, wire);
  } catch {
    if (deadline.reason === "cancelled") {
      return failure(`error: failed to connect service at ${goQuote(address)}: context canceled`, wire);
    }
    const within = `within ${formatDuration(timeoutMs)}: context deadline exceeded`;
    return failure(`timeout: failed to connect service ${goQuote(address)} ${within}`, wire);
  }
  try {
    const request = { authority: address, service: target.service, userAgent };
    return verdictOf(await checkHealth(connection, request, deadline), timeoutMs, wire);
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    return failure(lateText(timeoutMs), wire);
  } finally {
    connection.session.destroy();
    connection.socket.destroy();
  }
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
  switch (status.code) {
    case UNIMPLEMENTED:
      return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${status.message}`;
    case DEADLINE_EXCEEDED:
      return lateText(timeoutMs);
    default:
      return `error: health rpc probe failed: ${grpcErrorText(status)}`;
  }
}

function lateText(timeoutMs: number): string {
  return `timeout: health rpc did not complete within ${formatDuration(timeoutMs)}`;
}
