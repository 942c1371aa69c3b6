import { randomBytes } from "node:crypto";
import { realpathSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { isSingleBinary } from "@sluice/client/internal/config/version";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { UpstreamTls } from "@sluice/client/internal/net/tls";
import { startDemoCluster } from "@sluice/lab/demo/demo-cluster";
import { DemoFolder, DemoFolderTakenError } from "@sluice/lab/demo/demo-folder";
import { formatResults, runSelfCheck } from "@sluice/lab/demo/self-check";
import { startGateway } from "../../app/app.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/demo.ts";
import { requireLoopback } from "../loopback.ts";
import { coloured, shellWord } from "../print-text.ts";
import { withTerminationSignal } from "../termination-signal.ts";

/**
 * Starts two fake nodes and the gateway on loopback, shows that every path works, then serves until
 * SIGTERM or Ctrl-C.
 */
export async function run({ values }: Invocation<typeof command.flags>): Promise<number> {
  requireLoopback(values.address, "the demo runs commands on this machine");
  return await withTerminationSignal((stopped) => runUntil(stopped, values));
}

async function runUntil(
  stopped: Promise<NodeJS.Signals>,
  values: Invocation<typeof command.flags>["values"],
): Promise<number> {
  // The program that read the first line may be gone, and so may the terminal.
  process.stdout.on("error", () => {});
  const temporary = values.dir === undefined ? await mkdtemp(path.join(tmpdir(), "sluice-demo-")) : undefined;
  const folder = await DemoFolder.open(values.dir ?? (temporary as string)).catch(refuseTaken);
  try {
    return await runIn(folder, values.address, values.port, values.once, stopped);
  } catch (error) {
    return refuseTaken(error);
  } finally {
    await folder.remove();
    if (temporary !== undefined) await rm(temporary, { recursive: true, force: true });
  }
}

function refuseTaken(error: unknown): never {
  throw error instanceof DemoFolderTakenError ? new UsageError(`--dir: ${error.message}`) : error;
}

async function runIn(
  folder: DemoFolder,
  address: string,
  port: number,
  isOnce: boolean,
  stopped: Promise<NodeJS.Signals>,
): Promise<number> {
  let isStopping = false;
  void stopped.then(() => {
    isStopping = true;
  });
  const [serverCertificate, nodeCertificate, kubeletClientCertificate] = await Promise.all([
    createSelfSignedCertificate([address], "sluice-demo"),
    createSelfSignedCertificate([], "sluice-demo-node"),
    createSelfSignedCertificate([], "sluice-demo-gateway"),
  ]);
  const cluster = await startDemoCluster(nodeCertificate, kubeletClientCertificate.certPem, {
    hasWebSocketOnlyNode: isOnce,
  });
  try {
    const token = randomToken();
    const files = {
      serverCertificate,
      nodeCertificate,
      kubeletClientCertificate,
      token,
      manifests: cluster.manifests,
      address,
      port,
    };
    await folder.writeConfiguration(files);
    const configuration = await loadConfiguration(folder.configuration);
    const gateway = await startGateway(configuration);
    try {
      const { apiServerUrl = "", adminUrl } = gateway;
      await folder.writeAccess(apiServerUrl, adminUrl, files);
      process.stdout.write(`ready ${folder.kubeconfig}\n`);
      const { hostname, port: gatewayPort } = new URL(apiServerUrl);
      const endpoint = {
        host: hostname.replace(/^\[|\]$/g, ""),
        port: Number(gatewayPort),
        tls: new UpstreamTls({ ca: serverCertificate.certPem }),
      };
      const results = await runSelfCheck({ endpoint, token }, adminUrl, {
        hasWebSocketOnlyNode: isOnce,
        isStopped: () => isStopping && !isOnce,
      });
      if (isStopping && !isOnce) return 0;
      process.stdout.write(coloured(`\n${formatResults(results)}\n`, process.stdout));
      const hasFailed = results.some(({ problem }) => problem !== undefined);
      if (isOnce) return hasFailed ? 1 : 0;
      process.stdout.write(instructions(folder, adminUrl));
      await stopped;
      const count = gateway.sessions.list().length;
      const seconds = configuration.timeouts.shutdownGracePeriodMs / 1_000;
      if (count > 0) process.stdout.write(waiting(count, seconds));
      return 0;
    } finally {
      await gateway.shutDown();
    }
  } finally {
    await cluster.close();
  }
}

function waiting(sessions: number, seconds: number): string {
  const which = sessions === 1 ? "1 session that runs" : `${sessions} sessions that run`;
  return `\nWaiting up to ${seconds} s for ${which}. Ctrl-C again ends them now.\n`;
}

function instructions(folder: DemoFolder, adminUrl: string): string {
  return `The demo runs commands on this machine for any client with the token of its kubeconfig; it listens on loopback only.
Try, in another terminal:

  export KUBECONFIG=${shellWord(path.resolve(folder.kubeconfig))}
  kubectl get pods,nodes -o wide
  kubectl exec -it web -- sh            # to a node that speaks SPDY: translated
  kubectl exec -it web-ws -- sh         # to a node that declares ExtendWebSocketsToKubelet: passed through
  kubectl port-forward web 8080:80      # then open http://127.0.0.1:8080
  kubectl attach -i web                 # type a line; the container repeats it
  kubectl get streamingsessions -A      # sessions that run; kubectl delete streamingsession NAME ends one

The same without kubectl; also attach, cp, logs, port-forward:

  ${shellWord(programFile())} exec -it web -- sh

Sessions, health and metrics: ${adminUrl}
Stop with Ctrl-C.
`;
}

/** The path that starts this program from any folder. */
function programFile(): string {
  const [, script] = process.argv;
  return isSingleBinary || script === undefined ? process.execPath : realpathSync(script);
}

function randomToken(): string {
  return randomBytes(24).toString("base64url");
}
