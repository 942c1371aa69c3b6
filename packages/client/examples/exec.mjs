// Runs a command in a container: node exec.mjs KUBECONFIG POD CONTAINER COMMAND [ARGS...]
import { ConnectError, exec, openCluster, SessionError } from "@sluice/client";

const [file, pod = "", container, ...command] = process.argv.slice(2);
const { stdin, stdout, stderr } = process;
const signal = AbortSignal.timeout(60_000);
try {
  const cluster = await openCluster(file);
  const { exitCode } = await exec(cluster, { pod, container }, command, { stdin, stdout, stderr, signal });
  process.exitCode = exitCode;
} catch (error) {
  if (!(error instanceof ConnectError || error instanceof SessionError)) throw error;
  // Which part of the way failed, or how the session did.
  const part = error instanceof ConnectError ? error.leg : error.code;
  console.error(`${error.name} (${part}): ${error.message}`);
  process.exitCode = 1;
}
