import type { AdminSession } from "../../src/admin/admin-server.ts";

/** A session as a replica lists it. The ids have the order of the indexes. */
export function listedSession(index: number, namespace = "default", replica = "0a1b2c3d"): AdminSession {
  const id = `${replica}-0000-8000-8000-${String(index).padStart(12, "0")}`;
  return {
    id,
    subresource: "exec",
    namespace,
    pod: `pod-${index}`,
    node: "node",
    user: "ana",
    plan: { kind: "translate", reason: "" },
    startedAt: new Date(0),
    downstreamBytes: 0,
    upstreamBytes: 0,
  };
}
