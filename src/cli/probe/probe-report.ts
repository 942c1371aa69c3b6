import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { ProbeHandler } from "../../api/probe-objects.ts";
import type { ProbeResult } from "../../probes/probe-result.ts";

const MAX_MESSAGE_CHARACTERS = 500;

/** Describes one run for a reader: verdict, latency, wire facts, and the cause. */
export function reportText(
  what: string,
  { result, message, error, wire }: ProbeResult,
  latencyMs: number,
  cause: string | undefined,
): string {
  const rows: [string, string | undefined][] = [
    ["latency", `${latencyMs.toFixed(1)} ms`],
    ["error", error],
    ["message", message === "" ? undefined : oneLine(message)],
    ["protocol", wire.protocol],
    ["status", wire.status === undefined ? undefined : String(wire.status)],
    ["grpc status", wire.grpcStatus],
    [
      "certificate",
      wire.certificate === undefined ? undefined : `${oneLine(wire.certificate)} (not verified)`,
    ],
    ["redirects", wire.redirects?.join(" -> ")],
    ["likely cause", cause],
  ];
  const lines = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(13)}${value}\n`],
  );
  const verdict = error === undefined ? result : `${result} (the kubelet drops this round)`;
  return `${verdict}  ${what}\n${lines.join("")}`;
}

/** The handler in short notation. */
export function describeHandler({ exec, httpGet, tcpSocket, grpc }: ProbeHandler, host: string): string {
  if (exec !== undefined) return "exec";
  if (tcpSocket !== undefined) return `tcpSocket ${tcpSocket.host || host}:${tcpSocket.port}`;
  if (grpc !== undefined) {
    const service = grpc.service ? ` service ${JSON.stringify(grpc.service)}` : "";
    return `grpc ${joinHostPort(host, grpc.port)}${service}${grpc.mode === undefined ? "" : ` ${grpc.mode}`}`;
  }
  const { scheme = "HTTP", port, path = "/", protocol } = httpGet ?? { port: 0 };
  const where = `${scheme.toLowerCase()}://${httpGet?.host || host}:${port}${path}`;
  return `httpGet ${where}${protocol === undefined ? "" : ` ${protocol}`}`;
}

/** Servers write what they like, so control characters never reach the terminal. */
export function oneLine(text: string): string {
  const shown = text.length > MAX_MESSAGE_CHARACTERS ? `${text.slice(0, MAX_MESSAGE_CHARACTERS)}...` : text;
  const line = shown.trimEnd().replace(/\r?\n/g, " | ");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is replaced
  return line.replace(/[\x00-\x1f\x7f-\x9f]/g, "\u{fffd}");
}
