import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { ProbeHandler } from "../api/probe-objects.ts";
import { probeExec } from "./exec-probe.ts";
import { probeGrpc } from "./grpc/grpc-probe.ts";
import { probeHttp } from "./http/http-probe.ts";
import { type Cancellation, cancellationFor, openSocket, ProbeDeadline } from "./probe-deadline.ts";
import {
  DeadlineError,
  errored,
  failure,
  type ProbeResult,
  success,
  type WireFacts,
} from "./probe-result.ts";
import { expandCommand, type ProbeOptions, type ProbeTarget, resolveContainerPort } from "./probe-target.ts";

/** `runProbe`, or a function that runs it in another place. */
export type RunProbe = (
  handler: ProbeHandler,
  target: ProbeTarget,
  options: ProbeOptions,
) => Promise<ProbeResult>;

/**
 * Runs a probe once, like the kubelet. Never rejects; every socket is closed when it resolves. Exec
 * probes heed only `options.signal`.
 */
export async function runProbe(
  handler: ProbeHandler,
  target: ProbeTarget,
  options: ProbeOptions,
  cancellation: Cancellation | undefined = options.signal && cancellationFor(options.signal),
): Promise<ProbeResult> {
  const { timeoutMs, signal, gates } = options;
  const userAgent = `kube-probe/${options.userAgentVersion}`;
  const { exec, httpGet, tcpSocket, grpc } = handler;
  if (exec !== undefined) {
    if (target.runCommand === undefined) return errored("no way to run a command in the container");
    const command = expandCommand(exec.command ?? [], target.environment);
    return probeExec(command, target.runCommand, { timeoutMs, signal });
  }
  const deadline = new ProbeDeadline(timeoutMs, cancellation);
  try {
    if (httpGet !== undefined) {
      const isH2c = gates.H2CContainerProbe && httpGet.protocol === "HTTP2";
      return await probeHttp(httpGet, target, { userAgent, isH2c, deadline });
    }
    if (tcpSocket !== undefined) {
      const port = resolveContainerPort(tcpSocket.port, target.containerPorts);
      return await probeTcp(tcpSocket.host || target.host, port, deadline);
    }
    if (grpc !== undefined) {
      const isTls = gates.GRPCContainerProbeTLS && grpc.mode === "TLS";
      const wire: WireFacts = grpc.mode === "TLS" && !isTls ? { isModeIgnored: true } : {};
      return await probeGrpc(grpc, target.host, { userAgent, isTls, timeoutMs, deadline }, wire);
    }
    return errored(`missing probe handler for ${target.name ?? target.host}`);
  } catch (error) {
    // Only an unknown port name throws; whatever a server does is a result.
    return errored((error as Error).message);
  } finally {
    deadline.end();
  }
}

/** Connects, and closes at once. */
async function probeTcp(host: string, port: number, deadline: ProbeDeadline): Promise<ProbeResult> {
  const wire: WireFacts = {};
  try {
    const socket = await openSocket({ host, port }, deadline);
    socket.destroy();
    wire.protocol = "tcp";
    return success("", wire);
  } catch (error) {
    if (error instanceof DeadlineError) return failure(overText(host, port, deadline), wire);
    return failure((error as Error).message, wire);
  }
}

function overText(host: string, port: number, deadline: ProbeDeadline): string {
  const reason = deadline.reason === "cancelled" ? "operation was canceled" : "i/o timeout";
  return `dial tcp ${joinHostPort(host, port)}: ${reason}`;
}
