import {
  type CheckedServer,
  execOverSpdy,
  execOverWebSocket,
  forwardOverSpdy,
  forwardThroughTunnel,
} from "./check-client.ts";

/** One row: a client's action, and the path that it must take. */
interface CheckRow {
  readonly client: string;
  readonly pod: string;
  readonly subresource: "exec" | "portforward";
  readonly path: string;
  readonly run: (server: CheckedServer, pod: string) => Promise<void>;
}

interface CheckResult extends Omit<CheckRow, "run"> {
  readonly durationMs: number;
  /** Absent: it worked. */
  readonly problem?: string;
}

const checkExec =
  (version: string) =>
  async (server: CheckedServer, pod: string): Promise<void> => {
    const { stdout, status } =
      version === "SPDY" ? await execOverSpdy(server, pod) : await execOverWebSocket(server, pod, version);
    if (stdout !== "got hello\n") throw new Error(`the command said ${JSON.stringify(stdout)}`);
    const { reason, details } = JSON.parse(status || "{}");
    const code = details?.causes?.find((cause: { reason: string }) => cause.reason === "ExitCode")?.message;
    if (reason !== "NonZeroExitCode" || code !== "7")
      throw new Error(`its status was ${status || "missing"}`);
  };

const checkForward =
  (fetch: typeof forwardOverSpdy) =>
  async (server: CheckedServer, pod: string): Promise<void> => {
    const answer = await fetch(server, pod);
    if (!answer.includes(`Hello from pod ${pod}`))
      throw new Error(`the pod answered ${JSON.stringify(answer.slice(0, 80))}`);
  };

const exec = { subresource: "exec" } as const;
const forward = { subresource: "portforward" } as const;
const v5 = { client: "exec, WebSocket v5 (kubectl 1.30+)", run: checkExec("v5.channel.k8s.io"), ...exec };
const v4 = { client: "exec, WebSocket v4 (other clients)", run: checkExec("v4.channel.k8s.io"), ...exec };
const spdy = { client: "exec, SPDY/3.1 (kubectl to 1.29)", run: checkExec("SPDY"), ...exec };
const tunnel = {
  client: "port-forward, tunnel (kubectl 1.31+)",
  run: checkForward(forwardThroughTunnel),
  ...forward,
};
const bare = {
  client: "port-forward, SPDY/3.1 (kubectl to 1.30)",
  run: checkForward(forwardOverSpdy),
  ...forward,
};

/** The rows that the demo's two nodes can show. */
const rows: readonly CheckRow[] = [
  { ...v5, pod: "web", path: "translate" },
  { ...v5, pod: "web-ws", path: "pass-through" },
  { ...v4, pod: "web", path: "pass-through" },
  { ...v4, pod: "web-ws", path: "pass-through" },
  { ...spdy, pod: "web", path: "pass-through" },
  { ...spdy, pod: "web-ws", path: "pass-through" },
  { ...tunnel, pod: "web", path: "tunnel" },
  { ...tunnel, pod: "web-ws", path: "pass-through" },
  { ...bare, pod: "web", path: "pass-through" },
  { ...bare, pod: "web-ws", path: "pass-through" },
];

/** Every row of the plan, with a node that accepts only WebSockets. */
const webSocketOnlyRows: readonly CheckRow[] = [
  { ...v5, pod: "web-ws-only", path: "pass-through" },
  { ...v4, pod: "web-ws-only", path: "bridge" },
  { ...spdy, pod: "web-ws-only", path: "bridge" },
  { ...tunnel, pod: "web-ws-only", path: "pass-through" },
  { ...bare, pod: "web-ws-only", path: "bridge" },
];

/** Runs each row against the gateway, and checks in its metrics which path it took. */
export async function runSelfCheck(
  server: CheckedServer,
  adminUrl: string,
  {
    hasWebSocketOnlyNode,
    isStopped = () => false,
  }: { readonly hasWebSocketOnlyNode: boolean; readonly isStopped?: () => boolean },
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const { run, ...row } of hasWebSocketOnlyNode ? [...rows, ...webSocketOnlyRows] : rows) {
    if (isStopped()) break;
    const before = await sessionsOn(adminUrl, row);
    const startedMs = performance.now();
    const problem = await run(server, row.pod).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    const durationMs = performance.now() - startedMs;
    const hasTakenPath = (await sessionsOn(adminUrl, row)) === before + 1;
    const verdict = problem ?? (hasTakenPath ? undefined : `did not go by ${row.path}`);
    results.push({ ...row, durationMs, ...(verdict !== undefined && { problem: verdict }) });
  }
  return results;
}

async function sessionsOn(adminUrl: string, { subresource, path }: Omit<CheckRow, "run">): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const name = `sluice_streaming_requests_total{subresource="${subresource}",plan="${path}",code="101"} `;
  const line = text.split("\n").find((candidate) => candidate.startsWith(name));
  return line === undefined ? 0 : Number(line.slice(name.length));
}

/** The results as a table for a terminal. */
export function formatResults(results: readonly CheckResult[]): string {
  const cells = [
    ["client", "pod", "path", "result"],
    ...results.map(({ client, pod, path, durationMs, problem }) => [
      client,
      pod,
      path,
      problem === undefined ? `ok, ${durationMs.toFixed(0)} ms` : `FAILED: ${problem}`,
    ]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map(
    (row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`,
  );
  return `${lines.join("\n")}\n`;
}
