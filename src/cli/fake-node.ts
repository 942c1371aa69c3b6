import { randomUUID } from "node:crypto";
import { createSelfSignedCertificate, runFakeNode } from "../fake-node/index.ts";
import { helpText, parseFlags, terminationSignal } from "./flags.ts";
import { parseListenPort } from "./loopback.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice fake-node --name NAME [flags]", [
  ["--name NAME", "the node's name"],
  ["--address ADDR", "where to listen (127.0.0.1); it runs commands here for any client that connects"],
  ["--port PORT", "0 is any free one (10250)"],
  ["--declare-websockets", "behave as a node that declares ExtendWebSocketsToKubelet"],
  ["--pod NAMESPACE/NAME", "a pod on it, with container `main` (default/web); may be repeated"],
]);

/** One fake node with a self-signed certificate, until SIGTERM or Ctrl-C: for compositions and tests. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseFlags({
    args,
    options: {
      name: { type: "string" },
      address: { type: "string", default: "127.0.0.1" },
      port: { type: "string", default: "10250" },
      "declare-websockets": { type: "boolean", default: false },
      pod: { type: "string", multiple: true, default: ["default/web"] },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const { name, address, port, pod } = values;
  if (name === undefined) throw new UsageError(`--name NAME is required\n\n${HELP}`);
  const stopped = terminationSignal();
  const node = await runFakeNode({
    name,
    address,
    port: parseListenPort(port),
    declaresWebSockets: values["declare-websockets"],
    tls: await createSelfSignedCertificate([name, address], name),
    pods: pod.map(parsePod),
  });
  process.stdout.write(`ready https://${node.address}:${node.port}\n`);
  await stopped;
  await node.close();
  return 0;
}

function parsePod(text: string) {
  const [namespace, name, ...more] = text.split("/");
  if (!namespace || !name || more.length > 0) throw new UsageError(`--pod ${text}: must be NAMESPACE/NAME`);
  return { namespace, name, uid: randomUUID(), containers: [{ name: "main" }] };
}
