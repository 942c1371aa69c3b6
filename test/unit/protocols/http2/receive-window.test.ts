import { describe, expect, it } from "vitest";
import { ReceiveWindow } from "../../../../protocols/http2/receive-window.ts";

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
