import { randomUUID } from "node:crypto";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { runFakeNode } from "@sluice/lab/fake-node/run-fake-node";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/fake-node.ts";
import { withTerminationSignal } from "../termination-signal.ts";

/** Runs one fake node with a self-signed certificate until SIGTERM or Ctrl-C, for compositions and tests. */
export async function run({ values }: Invocation<typeof command.flags>): Promise<number> {
  const { name, address, port, pod } = values;
  await withTerminationSignal(async (stopped) => {
    const node = await runFakeNode({
      name,
      address,
      port,
      declaresWebSockets: values["declare-websockets"],
      tls: await createSelfSignedCertificate([name, address], name),
      pods: pod.map(parsePod),
    });
    process.stdout.write(`ready https://${node.address}:${node.port}\n`);
    await stopped;
    await node.close();
  });
  return 0;
}

function parsePod(text: string) {
  const [namespace, name, ...more] = text.split("/");
  if (!namespace || !name || more.length > 0) throw new UsageError(`--pod ${text}: must be NAMESPACE/NAME`);
  return { namespace, name, uid: randomUUID(), containers: [{ name: "main" }] };
}
