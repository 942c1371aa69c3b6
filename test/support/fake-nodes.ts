import type { SelfSignedCertificate } from "../../packages/client/src/net/self-signed.ts";
import { createFakeNode, type FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import type { FakeNodeLimits } from "../../packages/lab/src/fake-node/limits.ts";
import { runFakeNode } from "../../packages/lab/src/fake-node/run-fake-node.ts";

export interface WebNodeOptions {
  readonly name?: string;
  readonly pod?: string;
  readonly declaresWebSockets?: boolean;
  readonly tls?: SelfSignedCertificate | undefined;
  /** Ports of the pod and their loopback ports; by default HTTP on 80 and echo on 7. */
  readonly ports?: ReadonlyMap<number, number> | undefined;
  readonly limits?: Partial<FakeNodeLimits> | undefined;
}

/**
 * A fake node with one pod in `default`, whose container `main` is a shell that echoes the attached
 * input.
 */
export function runWebNode({
  name = "node",
  pod = "web",
  declaresWebSockets = false,
  tls,
  ports,
  limits,
}: WebNodeOptions = {}): Promise<FakeNode> {
  const containers = [{ name: "main", command: ["/bin/sh", "-c", "exec cat"] }];
  const web = { namespace: "default", name: pod, uid: pod, containers };
  const options = { name, declaresWebSockets, ...(tls && { tls }), ...(limits && { limits }) };
  return ports === undefined
    ? runFakeNode({ ...options, pods: [web] })
    : createFakeNode({ ...options, pods: [{ ...web, ports }] });
}
