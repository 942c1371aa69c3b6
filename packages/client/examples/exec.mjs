// Runs a command in a container: node exec.mjs KUBECONFIG POD CONTAINER COMMAND [ARGS...]
import { exec, openCluster } from "@sluice/client";

const [file, pod = "", container, ...command] = process.argv.slice(2);
const { stdin, stdout, stderr } = process;
const signal = AbortSignal.timeout(60_000);
try {
  const cluster = await openCluster(file);
  const { exitCode } = await exec(cluster, { pod, container }, command, { stdin, stdout, stderr, signal });
  process.exitCode = exitCode;
} catch (error) {
  // ConnectError has a `leg`, SessionError a `code`: which part of the way failed, and how.
  console.error(`${error.name} (${error.leg ?? error.code}): ${error.message}`);
  process.exitCode = 1;
}
