import { describe, expect, it } from "vitest";
import { ReceiveWindow, SendWindow } from "../../../../protocols/http2/receive-window.ts";

describe("a receive window", () => {
  it("is refilled whole when half of it is used, for its stream, and then counts anew", () => {
    const window = new ReceiveWindow(7);
    const sent: string[] = [];
    const receive = (bytes: number): void => {
      window.receive(bytes);
      window.refill((frame) => sent.push(Buffer.from(frame).toString("hex")));
    };
    receive(0);
    receive(32_767);
    expect(sent).toEqual([]);
    receive(1);
    expect(sent).toEqual(["00000408000000000700008000"]);
    receive(32_767);
    expect(sent).toHaveLength(1);
    receive(32_768);
    expect(sent[1]).toBe("0000040800000000070000ffff");
  });
});

describe("a send window", () => {
  it("begins as announced, or with the protocol's default", () => {
    expect([new SendWindow().bytes, new SendWindow(5).bytes]).toEqual([65_535, 5]);
  });

  it("can be made negative by SETTINGS (RFC 9113 section 6.9.2), and grows from there", () => {
    const window = new SendWindow(60);
    window.take(60);
    window.grow(-50);
    expect(window.bytes).toBe(-50);
    window.grow(51);
    expect(window.bytes).toBe(1);
  });

  it("grows to 2^31-1, and no further", () => {
    const window = new SendWindow(1);
    window.grow(0x7fff_fffe);
    expect(window.bytes).toBe(0x7fff_ffff);
    expect(() => window.grow(1)).toThrow(expect.objectContaining({ fault: "connection", code: 3 }));
  });
});
