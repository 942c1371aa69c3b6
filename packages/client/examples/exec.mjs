// Runs a command in a container: node exec.mjs KUBECONFIG POD CONTAINER COMMAND [ARGS...]
import {
  execPath,
  FallbackExecutor,
  kubeconfigTarget,
  loadKubeconfig,
  SpdyExecutor,
  WebSocketExecutor,
} from "@sluice/client";

const [file, pod, container, ...command] = process.argv.slice(2);
const kubeconfig = await loadKubeconfig(file);
const target = kubeconfigTarget(kubeconfig);
const path = execPath({ namespace: kubeconfig.namespace, pod, container }, command);
const executor = new FallbackExecutor(new WebSocketExecutor(target, path), new SpdyExecutor(target, path));
const { exitCode } = await executor.stream({ stdout: process.stdout, stderr: process.stderr });
process.exitCode = exitCode;
