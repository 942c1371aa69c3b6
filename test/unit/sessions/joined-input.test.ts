import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endOf } from "../../../packages/client/src/sessions/session-end.ts";
import type { SessionObserver, SessionStream } from "../../../src/sessions/observers/session-observer.ts";
import { MAX_PENDING_INPUT } from "../../../src/sessions/session.ts";
import { CarriedSession } from "../../support/carried-session.ts";
import { type Begin, bridged, carriers, passing, translated } from "../../support/command-carriers.ts";
import { settle } from "../../support/session-peers.ts";

/** What observers are shown of the input, each piece with its typist. */
class Typed implements SessionObserver {
  readonly isRequired = true;
  readonly payload = { input: true };
  readonly seen: string[] = [];
  refuses = "";
  onData({ type, by = "owner" }: SessionStream, from: string, part: Uint8Array) {
    const text = Buffer.from(part).toString();
    if (from === "client" && type === "stdin") this.seen.push(`${by}: ${text}`);
    return this.refuses !== "" && text.includes(this.refuses) ? endOf("refused", "refused") : undefined;
  }
}

async function begun(begin: Begin) {
  const typed = new Typed();
  const joinable = begin(new CarriedSession({}, [typed]));
  for (const socket of [joinable.carried.client, joinable.carried.node]) socket.on("error", () => {});
  await settle(joinable.node, joinable.client);
  const type = (text: string, by = "ben") => joinable.session.input?.(Buffer.from(text), by);
  return { ...joinable, typed, type, settled: () => settle(joinable.node, joinable.client) };
}

describe.each(Object.entries(carriers))("a joiner's input into %s", (_name, begin) => {
  it("comes between that of the session's own client, and observers see who typed", async () => {
    const { client, node, type, typed, settled } = await begun(begin);
    client.send("stdin", "one ");
    await settled();
    expect(type("two ")).toBe("taken");
    client.send("stdin", "three ");
    await settled();
    expect(type("four")).toBe("taken");
    await settled();
    expect(node.received.stdin).toBe("one two three four");
    expect(typed.seen).toEqual(["owner: one ", "ben: two ", "owner: three ", "ben: four"]);
  });

  it("waits once so much is queued for a node that reads nothing", async () => {
    const { carried, type } = await begun(begin);
    carried.node._write = () => {};
    const batch = "x".repeat(4_096);
    let taken = 0;
    while (type(batch) === "taken") taken += batch.length;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThanOrEqual(MAX_PENDING_INPUT);
    expect(carried.node.writableLength).toBeLessThanOrEqual(MAX_PENDING_INPUT + 64);
    expect(type(batch)).toBe("later");
  });

  it("ends the session if an observer refuses it, and none of it is passed on", async () => {
    const { carried, node, type, typed, settled } = await begun(begin);
    typed.refuses = "rm -rf";
    expect(type("rm -rf /")).toBe("no-input");
    await settled();
    expect(node.received.stdin).toBeUndefined();
    expect(carried.causes).toEqual(["refused"]);
    expect(type("ls")).toBe("no-input");
  });
});

describe("a joiner's input", () => {
  it.each([
    ["WebSocket that passes through", passing("websocket", "v5.channel.k8s.io")],
    ["a translated session", translated],
    ["a bridged session", bridged],
  ])("does not split a fragmented message of the client's: %s", async (_name, begin) => {
    const { carried, client, node, type, settled } = await begun(begin);
    const first = Buffer.from([0x02, 0x80 | 4, 0, 0, 0, 0, 0, ...Buffer.from("abc")]);
    const last = Buffer.from([0x80, 0x80 | 3, 0, 0, 0, 0, ...Buffer.from("def")]);
    carried.client.push(first);
    await turn();
    expect(type("!")).toBe("later");
    carried.client.push(last.subarray(0, 7));
    await turn();
    expect(type("!")).toBe("later");
    carried.client.push(last.subarray(7));
    await settled();
    expect(type("!")).toBe("taken");
    client.send("stdin", "?");
    await settled();
    expect(node.received.stdin).toBe("abcdef!?");
  });

  it("does not split a frame of a SPDY client's", async () => {
    const { carried, node, type, settled } = await begun(passing("spdy", "v4.channel.k8s.io"));
    // DATA of 4 bytes on the second stream that the client opened.
    const frame = Buffer.from([0, 0, 0, 3, 0, 0, 0, 4, ...Buffer.from("abcd")]);
    carried.client.push(frame.subarray(0, 10));
    await turn();
    expect(type("!")).toBe("later");
    carried.client.push(frame.subarray(10));
    await turn();
    expect(type("!")).toBe("taken");
    await settled();
    expect(node.received.stdin).toBe("abcd!");
  });

  it.each([
    ["WebSocket v5 that passes through", passing("websocket", "v5.channel.k8s.io")],
    ["SPDY that passes through", passing("spdy", "v4.channel.k8s.io")],
    ["a translated session", translated],
  ])("is refused once the client has ended stdin: %s", async (_name, begin) => {
    const { client, node, type, settled } = await begun(begin);
    client.send("stdin", "last");
    client.finish("stdin");
    await settled();
    expect(type("more")).toBe("no-input");
    await settled();
    expect(node.received.stdin).toBe("last");
  });

  it("is refused once stdin has ended in a message of two frames, and by nobody observed", async () => {
    const { carried, session } = passing("websocket", "v5.channel.k8s.io")(new CarriedSession());
    carried.client.push(Buffer.from([0x02, 0x80 | 1, 0, 0, 0, 0, 255]));
    await turn();
    carried.client.push(Buffer.from([0x80, 0x80 | 1, 0, 0, 0, 0, 0]));
    await turn();
    expect(session.input?.(Buffer.from("x"), "ben")).toBe("no-input");
  });
});
