import { expect, it } from "vitest";
import {
  CLIENT,
  COMPLETED,
  endsWithPeer,
  FAILURES,
  failureSeen,
  LOST,
  opened,
  type Path,
  readBy,
  report,
  SettableClock,
  start,
  write,
} from "./session-ends.ts";

/**
 * For a `describe` of a path with `afterEach(closeEnds)`: tests of ends that are the same on every
 * path.
 */
export function testEnds(path: Path): void {
  it.each(["FIN", "RST"])("is the client's that is killed: %s", async (how) => {
    const { client, node } = await start(path);
    endsWithPeer(node);
    if (how === "RST") client.resetAndDestroy();
    else client.end();
    expect(await report()).toEqual(CLIENT);
  });

  it.each(["FIN", "RST"])("is the node's that is killed: %s", async (how) => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    if (how === "RST") node.resetAndDestroy();
    else node.end();
    expect(await report()).toEqual(LOST);
  });

  it("is the node's word where it says one", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    write(node, path.nodeSucceeds);
    node.end();
    expect(await report()).toEqual(COMPLETED);
  });

  it.each([
    "client",
    "node",
  ] as const)("is the gateway's where the network of the %s stalls", async (proxied) => {
    const { client, node } = await start(path, { proxied, idleMs: 500 });
    for (const end of [client, node]) endsWithPeer(end);
    opened.cable?.freeze();
    expect(await report()).toEqual({ endedBy: "gateway", cause: "idle", code: 500 });
  });
}

/** Likewise: tests of what a client reads if a session fails. */
export function testFailures(path: Path): void {
  it.each(FAILURES)("is told, and has no clean end, where %s", async (what, closeCode, act) => {
    const rule = { name: "short", action: "allow", maxDuration: what.includes("limit") ? "10s" : "1h" };
    const clock = new SettableClock();
    const idleMs = what.includes("idle") ? 5_000 : 600_000;
    const { client, node } = await start(path, { policy: { rules: [rule] }, clock, idleMs });
    const received: Buffer[] = [];
    client.on("data", (chunk: Buffer) => received.push(chunk));
    const closed = new Promise((resolve) => client.once("close", resolve));
    for (const end of [client, node]) endsWithPeer(end);
    act(node, clock);
    await closed;
    const expected = failureSeen(path, closeCode).map((pattern) => expect.stringMatching(pattern));
    expect(readBy(path, Buffer.concat(received)).slice(-expected.length)).toEqual(expected);
  });
}
