import { describe, expect, it } from "vitest";
import { SendWindow } from "../../../../protocols/http2/send-window.ts";

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
