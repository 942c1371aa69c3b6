import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endOf } from "../../../packages/client/src/sessions/session-end.ts";
import { Relay } from "../../../src/sessions/carriers/relay.ts";
import type {
  PassThroughDecoder,
  RelayedSession,
} from "../../../src/sessions/decoders/pass-through-decoder.ts";
import { CommandEndObserver } from "../../../src/sessions/observers/end-observer.ts";
import type { SessionTimeouts } from "../../../src/sessions/session.ts";
import { CarriedSession } from "../../support/carried-session.ts";

// The bound under test.
const BULK_OUTPUT_BYTES = 512 * 1024;

const NOTHING = new Uint8Array(0);

function relayed(session?: RelayedSession, timeouts?: Partial<SessionTimeouts>) {
  const carried = new CarriedSession(timeouts);
  const { client, node } = carried;
  carried.carry(
    (life) => new Relay({ socket: client, head: NOTHING }, { socket: node, head: NOTHING }, life, session),
  );
  return { carried, client, node, causes: () => carried.causes };
}

describe("a relay", () => {
  it("passes the bytes that came with both upgrades first, and then every other", async () => {
    const carried = new CarriedSession();
    const { client, node, life } = carried;
    const [early, first] = [Buffer.from("early "), Buffer.from("first ")];
    carried.carry(() => new Relay({ socket: client, head: early }, { socket: node, head: first }, life));
    client.push("input");
    node.push("output");
    await turn();
    expect([node.sentBytes.toString(), client.sentBytes.toString()]).toEqual(["early input", "first output"]);
    expect(life).toMatchObject({ upstreamBytes: 11, downstreamBytes: 12 });
  });

  it("ends the node's side behind the client's input, and goes on with its output", async () => {
    const { client, node, causes } = relayed();
    client.push(null);
    await turn();
    expect(node.writableEnded).toBe(true);
    node.push("late");
    await turn();
    expect(client.sentBytes.toString()).toBe("late");
    expect(causes()).toEqual([]);
  });

  it("gives up a node that says nothing more to a client that ended", async () => {
    const { carried, client, node, causes } = relayed();
    client.push(null);
    await turn();
    carried.clock.advance(carried.life.timeouts.lingerIdleMs - 1);
    expect(causes()).toEqual([]);
    carried.clock.advance(1);
    expect(causes()).toEqual(["client-gone"]);
    expect([client.destroyed, node.writableEnded]).toEqual([true, true]);
  });

  it("delivers the input that it holds for a client that resets", async () => {
    const decoder: PassThroughDecoder = {
      fromClient: (chunk, pass) => void pass(chunk),
      fromNode: (chunk, pass) => void pass(chunk),
    };
    const { client, node, causes } = relayed({ decoder, closesBehindResult: true });
    client.on("error", () => {});
    node.push(Buffer.alloc(BULK_OUTPUT_BYTES));
    await turn();
    client.push("^C");
    await turn();
    expect(node.sentBytes.toString()).toBe("");
    client.destroy(new Error("reset"));
    await expect.poll(causes).toEqual(["client-gone"]);
    expect([node.sentBytes.toString(), node.writableEnded]).toEqual(["^C", true]);
  });

  it("breaks the client's connection where the node's breaks", async () => {
    const { client, node, causes } = relayed();
    client.on("error", () => {});
    node.destroy(new Error("reset"));
    await expect.poll(causes).toEqual(["upstream-lost"]);
    await expect.poll(() => client.destroyed).toBe(true);
    expect(client.writableFinished).toBe(false);
  });

  it("does not break it where the node's whole result is known", async () => {
    const ends = {
      hasResult: true,
      clientLeft: () => {},
      nodeEnd: () => endOf("completed", "exit code 0"),
    } as unknown as RelayedSession["ends"];
    const { client, node } = relayed({ ends });
    node.destroy(new Error("reset"));
    await expect.poll(() => client.writableFinished).toBe(true);
  });

  it("writes the decoder's failure where the node ends without a status", async () => {
    const decoder: PassThroughDecoder = {
      fromClient: (chunk, pass) => void pass(chunk),
      fromNode: (chunk, pass) => void pass(chunk),
      failureFrame: (message) => Buffer.from(`[${message}]`),
    };
    const ends = new CommandEndObserver("v4.channel.k8s.io", "spdy");
    const { client, node } = relayed({ decoder, ends });
    node.push("out ");
    node.push(null);
    await expect.poll(() => client.writableFinished).toBe(true);
    expect(client.sentBytes.toString()).toBe("out [the node ended the session without a status]");
  });

  it("passes nothing on that an observer refuses, and nothing behind it", async () => {
    const refused = endOf("refused", "port 22 is denied");
    const decoder: PassThroughDecoder = {
      fromClient: (chunk, pass) => (chunk[0] === 33 ? refused : void pass(chunk)),
      fromNode: (chunk, pass) => void pass(chunk),
    };
    const { client, node, carried } = relayed({ decoder });
    client.on("error", () => {});
    client.push("ok");
    await turn();
    client.push("!bad");
    client.push("more");
    await expect
      .poll(() => carried.reports)
      .toMatchObject([{ cause: "refused", message: "port 22 is denied" }]);
    expect(node.sentBytes.toString()).toBe("ok");
    expect(node.destroyed).toBe(true);
  });

  it("ends both sides at its limit", () => {
    const { carried, client, node, causes } = relayed(undefined, { idleMs: 5_000 });
    client.on("error", () => {});
    carried.clock.advance(5_000);
    expect(causes()).toEqual(["idle"]);
    expect([client.destroyed, node.destroyed]).toEqual([true, true]);
  });
});
