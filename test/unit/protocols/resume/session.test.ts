import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeAbort } from "../../../../protocols/resume/frames.ts";
import { ResumeSession } from "../../../../protocols/resume/index.ts";
import { TwoPeers } from "./two-peers.ts";

const WINDOW = 64;

type Step =
  | { readonly do: "write"; readonly byServer: boolean; readonly bytes: number }
  | { readonly do: "end" | "read" | "tick"; readonly byServer: boolean }
  | {
      readonly do: "move";
      readonly toServer: boolean;
      readonly messages: number;
      readonly lastBytes: number;
      readonly partBytes: number;
    }
  | { readonly do: "cut" }
  | { readonly do: "connect" }
  | { readonly do: "connectInVain" };

const byServer = fc.boolean();
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ do: fc.constant("write" as const), byServer, bytes: fc.nat(100) }), weight: 6 },
  {
    arbitrary: fc.record({
      do: fc.constant("move" as const),
      toServer: fc.boolean(),
      messages: fc.integer({ min: 1, max: 4 }),
      lastBytes: fc.oneof(fc.constant(1_000), fc.nat(60)),
      partBytes: fc.integer({ min: 1, max: 50 }),
    }),
    weight: 8,
  },
  { arbitrary: fc.record({ do: fc.constant("read" as const), byServer }), weight: 4 },
  { arbitrary: fc.record({ do: fc.constant("tick" as const), byServer }), weight: 2 },
  { arbitrary: fc.record({ do: fc.constant("end" as const), byServer }), weight: 1 },
  {
    arbitrary: fc.record({
      do: fc.constantFrom("cut" as const, "connect" as const, "connectInVain" as const),
    }),
    weight: 4,
  },
);

describe("ResumeSession", () => {
  it("delivers every byte once and in order, whatever is cut and when", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const peers = new TwoPeers(WINDOW);
        const written = { client: [] as number[], server: [] as number[] };
        let next = 0;
        for (const taken of steps) {
          if (taken.do === "write") {
            const side = taken.byServer ? "server" : "client";
            if (peers[side].wantsEnd) continue;
            const bytes = Uint8Array.from({ length: taken.bytes }, () => next++ % 251);
            written[side].push(...bytes);
            peers[side].write(bytes);
          } else if (taken.do === "move") {
            peers.move(taken.toServer, taken.messages, taken.lastBytes, taken.partBytes);
          } else if (taken.do === "cut" || taken.do === "connect" || taken.do === "connectInVain") {
            peers[taken.do]();
          } else {
            const peer = taken.byServer ? peers.server : peers.client;
            if (taken.do === "end") peer.end();
            else if (taken.do === "read") peer.read();
            else peer.session.tick();
          }
          for (const { session, largestUnconsumed } of [peers.client, peers.server]) {
            expect(session.unacknowledgedBytes).toBeLessThanOrEqual(WINDOW);
            expect(largestUnconsumed).toBeLessThanOrEqual(WINDOW);
          }
          // Never more, and never others, than what was written.
          expect(peers.server.delivered).toEqual(written.client.slice(0, peers.server.delivered.length));
          expect(peers.client.delivered).toEqual(written.server.slice(0, peers.client.delivered.length));
        }
        peers.client.end();
        peers.server.end();
        peers.connect();
        peers.settle();
        expect(peers.server.delivered).toEqual(written.client);
        expect(peers.client.delivered).toEqual(written.server);
        expect([peers.client.session.isComplete, peers.server.session.isComplete]).toEqual([true, true]);
        expect([peers.client.hasEnded, peers.client.hasFinished]).toEqual([true, true]);
        expect([peers.client.aborts, peers.server.aborts]).toEqual([[], []]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("stops at the window while nobody reads, and answers stay on their way", () => {
    const peers = new TwoPeers(WINDOW);
    peers.client.write(new Uint8Array(3 * WINDOW).fill(1));
    peers.move(true, 100, 1_000, 1_000);
    expect([peers.server.undelivered, peers.client.unwritten.byteLength]).toEqual([WINDOW, 2 * WINDOW]);
    // The other direction does not wait for it.
    peers.server.write(Uint8Array.of(7, 8));
    peers.move(false, 100, 1_000, 1_000);
    expect(peers.client.delivered).toEqual([7, 8]);
    peers.settle();
    expect(peers.server.delivered).toHaveLength(3 * WINDOW);
  });

  it("acknowledges a quarter of the window at once, and less with the next tick", () => {
    const peers = new TwoPeers(WINDOW);
    peers.settle();
    peers.client.write(new Uint8Array(WINDOW / 4 - 1));
    peers.move(true, 100, 1_000, 1_000);
    expect(peers.server.outgoing).toHaveLength(0);
    peers.server.session.tick();
    expect(peers.server.outgoing).toHaveLength(1);
    peers.settle();
    peers.client.write(new Uint8Array(WINDOW / 4));
    peers.move(true, 100, 1_000, 1_000);
    expect(peers.server.outgoing).toHaveLength(1);
  });

  it("tells with payload what it received", () => {
    const peers = new TwoPeers(WINDOW);
    peers.client.write(Uint8Array.of(1, 2, 3));
    peers.move(true, 100, 1_000, 1_000);
    peers.server.write(Uint8Array.of(9));
    expect(peers.client.session.unacknowledgedBytes).toBe(3);
    peers.move(false, 100, 1_000, 1_000);
    expect(peers.client.session.unacknowledgedBytes).toBe(0);
  });

  it("sends only what the peer lacks", () => {
    const peers = new TwoPeers(WINDOW);
    peers.client.write(Uint8Array.from({ length: 40 }, (_, index) => index));
    // 10 of the 40 bytes behind their header.
    peers.move(true, 1, 21 + 10, 100);
    expect(peers.server.delivered).toHaveLength(10);
    peers.connect();
    const [, data] = peers.client.outgoing ?? [];
    expect(data?.slice(1, 9)).toEqual(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 10));
    expect(data?.byteLength).toBe(21 + 30);
  });

  it("tells the peer of a forced end, and takes nothing any more", () => {
    const peers = new TwoPeers(WINDOW);
    peers.server.session.abort(2, "the gateway is shutting down");
    peers.settle();
    expect(peers.client.aborts).toEqual(["the gateway is shutting down"]);
    expect(peers.client.session.canAttach(0)).toBe(false);
    expect(peers.server.session.canAttach(0)).toBe(false);
  });

  it("refuses a resumption from before what was acknowledged, and one from the future", () => {
    const peers = new TwoPeers(WINDOW);
    peers.server.write(new Uint8Array(10));
    peers.settle();
    const { session } = peers.server;
    expect([session.canAttach(9), session.canAttach(10), session.canAttach(11)]).toEqual([
      false,
      true,
      false,
    ]);
    // A FIN counts as one.
    peers.cut();
    peers.server.end();
    expect([session.canAttach(11), session.canAttach(12)]).toEqual([true, false]);
  });

  const number = (value: number): number[] => [0, 0, 0, 0, 0, 0, 0, value];
  const free = [0, 0, 0, WINDOW];
  it.each([
    ["a gap", [1, ...number(1), ...number(0), ...free, 5], "bytes are missing before those that came"],
    [
      "more than there is room for",
      [1, ...number(0), ...number(0), ...free, ...new Array(WINDOW + 1).fill(0)],
      "more came than there is room for",
    ],
    [
      "bytes acknowledged that were never sent",
      [3, ...number(1), ...free],
      "the peer acknowledges what was never sent",
    ],
    [
      "an end that is not at the end",
      [2, ...number(4), ...number(0), ...free],
      "the end is not where it was",
    ],
    ["an unknown type", [9], "there is no frame type 9"],
    ["an empty message", [], "a frame is empty"],
    ["a short ACK", [3, 0, 0], "a frame is too short"],
    ["a long ACK", [3, ...number(0), ...free, 1], "a frame is too long"],
    ["a cut DATA header", [1, 0, 0], "a frame is too short"],
    ["an offset beyond 2^53", [3, 0xff, 0, 0, 0, 0, 0, 0, 0, ...free], "an offset is beyond 2^53"],
    ["an ABORT without a code", [4], "a frame is too short"],
    ["an endless ABORT", [4, 1, ...new Array(200).fill(65)], "a frame is too long"],
  ])("ends a session whose peer sends %s, and says why", (_name, bytes, message) => {
    const sent: Uint8Array[] = [];
    const session = new ResumeSession(WINDOW, {
      send: (header) => sent.push(Uint8Array.from(header)),
      onData: () => {},
      onEnd: () => {},
      onRoom: () => {},
      onFinished: () => {},
      onAbort: () => {},
    });
    session.attach(0);
    expect(() => session.receive(Uint8Array.from(bytes), true, true)).toThrow(message);
    expect(session.isOver).toBe(true);
    expect(sent.at(-1)).toEqual(encodeAbort(1, message));
  });

  it("drops bytes that came before, also where only a frame's beginning did", () => {
    const { server } = new TwoPeers(WINDOW);
    for (const [offset, ...bytes] of [
      [0, 1, 2, 3],
      [1, 2, 3, 4],
      [0, 1],
    ] as const) {
      const frame = [1, ...number(offset), ...number(0), ...free, ...bytes];
      server.session.receive(Uint8Array.from(frame), true, true);
    }
    expect(server.delivered).toEqual([1, 2, 3, 4]);
  });

  it("refuses bytes behind the end", () => {
    const peers = new TwoPeers(WINDOW);
    peers.client.end();
    peers.settle();
    const late = Uint8Array.from([1, ...number(1), ...number(0), ...free, 5]);
    expect(() => peers.server.session.receive(late, true, true)).toThrow("bytes came behind the end");
  });
});
