import { describe, expect, it } from "vitest";
import {
  type NodeConnection,
  NodeConnections,
} from "../../../src/sessions/carriers/forwards/node-connections.ts";

type Ways = ConstructorParameters<typeof NodeConnections>[0];
type Upstream = Awaited<ReturnType<Ways["dial"]>>;

/** Connections to a node that takes each; `endsAtOnce`: and ends it before its answer is read. */
function connections({ endsAtOnce = false } = {}) {
  const counts = { dials: 0 };
  const nodes = new NodeConnections({
    dial: () => {
      counts.dials += 1;
      return Promise.resolve({} as Upstream);
    },
    adopt: () => {
      const peer = { isOver: endsAtOnce, finish: () => {} };
      return { peer, users: new Set() } as unknown as NodeConnection;
    },
  });
  const only = (): NodeConnection => {
    const [connection, ...more] = nodes.open;
    expect(more).toEqual([]);
    if (connection === undefined) throw new Error("no connection is open");
    return connection;
  };
  return { nodes, counts, only };
}

const user = { connectionLost: () => {} };

describe("the connections of a port-forward to its node", () => {
  it("are replaced once if they end unused: a node that ends each at once is not dialled for ever", async () => {
    const { nodes, counts, only } = connections();
    nodes.lost(nodes.put({} as Upstream));
    await nodes.keepOne();
    expect(counts.dials).toBe(1);
    nodes.lost(only());
    await expect(nodes.keepOne()).rejects.toThrow("the node ends connections that carry nothing");
    expect(counts.dials).toBe(1);
  });

  it("are replaced again if the replacement carried a forwarded connection", async () => {
    const { nodes, counts, only } = connections();
    nodes.lost(nodes.put({} as Upstream));
    await nodes.keepOne();
    const replacement = await nodes.take(user);
    await expect.poll(() => nodes.size).toBe(2);
    nodes.lost(replacement);
    nodes.lost(only());
    const before = counts.dials;
    await nodes.keepOne();
    expect(counts.dials).toBe(before + 1);
  });

  it("are not replaced by one that has ended already", async () => {
    const { nodes } = connections({ endsAtOnce: true });
    await expect(nodes.keepOne()).rejects.toThrow("the node ends connections that carry nothing");
    expect(nodes.size).toBe(0);
  });
});
