import type { ProbeHandler } from "../api/probe-objects.ts";
import { parseDuration } from "../config/duration.ts";
import { FeatureGateError, FeatureGates } from "../config/feature-gates.ts";
import { resolveContainerPort } from "../probes/container-port.ts";
import { identifyServer } from "../probes/identify-server.ts";
import { likelyCause } from "../probes/likely-cause.ts";
import type { ProbeResult } from "../probes/probe-result.ts";
import type { ProbeTarget } from "../probes/probe-target.ts";
import { runProbe } from "../probes/run-probe.ts";
import { type ProbeKind, type ProbeTiming, timingOf } from "../probes/worker/probe-kind.ts";
import { helpText, parseFlags, terminationSignal } from "./flags.ts";
import { readPodProbe } from "./probe-pod-argument.ts";
import { describeHandler, reportText } from "./probe-report.ts";
import { runtimeCommands } from "./probe-runtime.ts";
import { parseProbeUrl } from "./probe-url-argument.ts";
import { ProbeWatch } from "./probe-watch.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice probe URL [flags]  |  sluice probe -f FILE --pod-ip IP [flags]", [
  ["URL", "http://HOST:PORT/PATH, https://..., grpc://HOST:PORT or tcp://HOST:PORT"],
  ["--protocol HTTP1|HTTP2", "as httpGet.protocol: HTTP2 is HTTP/2 in cleartext with prior knowledge"],
  ["--header 'NAME: VALUE'", "as httpGet.httpHeaders; may be given several times"],
  ["--service NAME", "as grpc.service"],
  ["--mode Plaintext|TLS", "as grpc.mode"],
  ["-f, --filename FILE", "a Pod manifest, judged as the API server does"],
  ["--pod, --container NAME", "which of its pods and containers; needed where there are several"],
  ["--kind KIND", "liveness, readiness or startup; needed where there are several"],
  ["--pod-ip IP", "where the pod is"],
  ["--runtime-endpoint unix://PATH", "this node's container runtime, which runs exec probes"],
  ["--timeout DURATION", "time-out of one run; the manifest's, or 1s"],
  ["--watch", "probe again and again, and count as the kubelet does"],
  ["--period, --success-threshold, --failure-threshold", "for --watch; the manifest's, or 10s, 1 and 3"],
  ["--rounds NUMBER", "end --watch after so many"],
  ["--feature-gates A=true,B=false", "all gates of probes are on unless said otherwise"],
  ["--kubelet-version MAJOR.MINOR", "of the User-Agent kube-probe/MAJOR.MINOR"],
]);

const KUBELET_VERSION = "1.37";

/** Runs a probe as the kubelet does and says what was on the wire. Exit code 0 for Success and Warning, 1 otherwise. */
export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseFlags({
    args,
    allowPositionals: true,
    options: {
      filename: { type: "string", short: "f" },
      protocol: { type: "string" },
      header: { type: "string", multiple: true },
      service: { type: "string" },
      mode: { type: "string" },
      pod: { type: "string" },
      container: { type: "string" },
      kind: { type: "string" },
      "pod-ip": { type: "string" },
      "runtime-endpoint": { type: "string" },
      timeout: { type: "string" },
      watch: { type: "boolean" },
      period: { type: "string" },
      "success-threshold": { type: "string" },
      "failure-threshold": { type: "string" },
      rounds: { type: "string" },
      "feature-gates": { type: "string" },
      "kubelet-version": { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const gates = gatesOf(values["feature-gates"]);
  const asked = await readAsked(positionals, values, gates);
  try {
    return await runAsked(asked, values, gates);
  } finally {
    asked.close?.();
  }
}

async function runAsked(asked: AskedProbe, values: Values, gates: FeatureGates): Promise<number> {
  const text = (name: string) => values[name] as string | undefined;
  const timing: ProbeTiming = {
    ...asked.timing,
    ...secondsOf("timeoutSeconds", "timeout", text("timeout")),
    ...secondsOf("periodSeconds", "period", text("period")),
    ...countOf("successThreshold", "success-threshold", text("success-threshold")),
    ...countOf("failureThreshold", "failure-threshold", text("failure-threshold")),
  };
  const attempt = () =>
    runProbe(asked.handler, asked.target, {
      timeoutMs: timing.timeoutSeconds * 1_000,
      userAgentVersion: text("kubelet-version") ?? KUBELET_VERSION,
      gates: {
        H2CContainerProbe: gates.isEnabled("H2CContainerProbe"),
        GRPCContainerProbeTLS: gates.isEnabled("GRPCContainerProbeTLS"),
      },
    });
  const what = describeHandler(asked.handler, asked.target.host);
  if (values.watch) {
    const stopping = new AbortController();
    void terminationSignal().then(() => stopping.abort());
    const { rounds } = countOf("rounds", "rounds", text("rounds"));
    const watch = new ProbeWatch({
      what,
      kind: asked.kind,
      timing,
      attempt,
      maxRounds: rounds,
      write: (text) => process.stdout.write(text),
      isTerminal: process.stdout.isTTY === true,
    });
    return (await watch.run(stopping.signal)) ? 0 : 1;
  }
  const startMs = performance.now();
  const result = await attempt();
  const latencyMs = performance.now() - startMs;
  process.stdout.write(reportText(what, result, latencyMs, await causeOf(asked, result)));
  return result.error === undefined && (result.result === "Success" || result.result === "Warning") ? 0 : 1;
}

interface AskedProbe {
  /** Lets go of what commands are run by. */
  readonly close?: () => void;
  readonly handler: ProbeHandler;
  readonly target: ProbeTarget;
  readonly kind: ProbeKind;
  readonly timing: ProbeTiming;
}

type Values = { readonly [Name in string]?: string | boolean | string[] | undefined };

async function readAsked(
  positionals: readonly string[],
  values: Values & { readonly header?: string[] | undefined },
  gates: FeatureGates,
): Promise<AskedProbe> {
  const [url, ...more] = positionals;
  const text = (name: string) => values[name] as string | undefined;
  const file = text("filename");
  if (more.length > 0 || (url === undefined) === (file === undefined)) {
    throw new UsageError(`one URL or one -f FILE is needed\n\n${HELP}`);
  }
  const endpoint = text("runtime-endpoint");
  if (url !== undefined) {
    if (endpoint !== undefined) throw new UsageError(`--runtime-endpoint says nothing about ${url}`);
    const flags = {
      protocol: text("protocol"),
      service: text("service"),
      mode: text("mode"),
      header: values.header,
    };
    const { handler, host } = parseProbeUrl(url, flags);
    const kind = kindOf(text("kind") ?? "readiness");
    return { handler, target: { host, containerPorts: [] }, kind, timing: timingOf({}) };
  }
  const wanted = { container: text("container"), kind: text("kind"), pod: text("pod") };
  const { pod, container, kind, probe } = await readPodProbe(file ?? "", wanted, gates);
  const host = text("pod-ip") ?? pod.status?.podIP;
  if (host === undefined && probe.exec === undefined) {
    throw new UsageError("--pod-ip IP is needed: the manifest has no status.podIP");
  }
  const name = `${pod.metadata.name}:${container.name}`;
  const target = { host: host ?? "", containerPorts: container.ports ?? [], name };
  if (probe.exec === undefined) {
    if (endpoint !== undefined)
      throw new UsageError("--runtime-endpoint is for exec probes, and this is none");
    return { handler: probe, target, kind, timing: timingOf(probe) };
  }
  if (endpoint === undefined) {
    throw new UsageError("an exec probe needs --runtime-endpoint: the container's runtime runs the command");
  }
  const { namespace = "default", name: podName } = pod.metadata;
  const commands = await runtimeCommands(endpoint, { namespace, name: podName }, container.name);
  const environment = Array.isArray(container.env) ? container.env : [];
  return {
    handler: probe,
    target: { ...target, environment, runCommand: commands.runCommand },
    kind,
    timing: timingOf(probe),
    close: commands.close,
  };
}

/** Looked into only where something went wrong: it takes connections of its own. */
async function causeOf({ handler, target }: AskedProbe, result: ProbeResult): Promise<string | undefined> {
  if (handler.exec !== undefined) return undefined;
  if (result.result === "Success" || (result.error !== undefined && result.wire.status === undefined)) {
    return undefined;
  }
  const action = handler.httpGet ?? handler.tcpSocket;
  const host = action?.host || target.host;
  const port = resolveContainerPort((action ?? handler.grpc)?.port ?? 0, target.containerPorts);
  return likelyCause({ handler, result, server: await identifyServer(host, port) });
}

function kindOf(text: string): ProbeKind {
  switch (text.toLowerCase()) {
    case "liveness":
      return "Liveness";
    case "readiness":
      return "Readiness";
    case "startup":
      return "Startup";
  }
  throw new UsageError(`--kind must be liveness, readiness or startup, got ${JSON.stringify(text)}`);
}

function gatesOf(flag: string | undefined): FeatureGates {
  try {
    return FeatureGates.parse({ H2CContainerProbe: true, GRPCContainerProbeTLS: true }).with(flag ?? "");
  } catch (error) {
    if (!(error instanceof FeatureGateError)) throw error;
    throw new UsageError(error.message);
  }
}

function secondsOf<Field extends string>(
  field: Field,
  flag: string,
  text: string | undefined,
): { [Name in Field]?: number } {
  if (text === undefined) return {};
  try {
    const milliseconds = parseDuration(text);
    if (milliseconds > 0) return { [field]: milliseconds / 1_000 } as { [Name in Field]?: number };
  } catch {
    // Said below, with the flag's name.
  }
  throw new UsageError(`--${flag} must be a duration such as "2s", got ${JSON.stringify(text)}`);
}

function countOf<Field extends string>(
  field: Field,
  flag: string,
  text: string | undefined,
): { [Name in Field]?: number } {
  if (text === undefined) return {};
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UsageError(`--${flag} must be a number from 1 on`);
  return { [field]: Number(text) } as { [Name in Field]?: number };
}
