// Runs a command in a pod and prints what it says: node exec.mjs POD COMMAND [ARGS...]
import {
  execPath,
  FallbackExecutor,
  kubeconfigTarget,
  loadKubeconfig,
  SpdyExecutor,
  WebSocketExecutor,
} from "@sluice/client";

const [pod, ...command] = process.argv.slice(2);
const kubeconfig = await loadKubeconfig();
const target = kubeconfigTarget(kubeconfig);
const path = execPath({ namespace: kubeconfig.namespace, pod }, command);

const executor = new FallbackExecutor(new WebSocketExecutor(target, path), new SpdyExecutor(target, path));
try {
  const { exitCode } = await executor.stream({
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: AbortSignal.timeout(60_000),
  });
  process.exitCode = exitCode;
} catch (error) {
  // ConnectError has a `leg`, SessionError a `code`: which part of the way failed, and how.
  console.error(`${error.name} (${error.leg ?? error.code}): ${error.message}`);
  process.exitCode = 1;
}
