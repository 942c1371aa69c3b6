import { describe, expect, it } from "vitest";
import { StreamPairing, timeoutText } from "../../../../protocols/portforward/index.ts";

const error = (requestId: string) => ({ streamType: "error" as const, port: 80, requestId });
const data = (requestId: string, port = 80) => ({ streamType: "data" as const, port, requestId });

describe("StreamPairing", () => {
  it("pairs by request id, in either order and interleaved", () => {
    const pairing = new StreamPairing<string>();
    expect(pairing.add(error("0"), "e0", 0)).toEqual({ type: "waiting" });
    expect(pairing.add(data("1", 90), "d1", 0)).toEqual({ type: "waiting" });
    expect(pairing.add(error("1"), "e1", 0)).toEqual({
      type: "paired",
      pair: { requestId: "1", port: 90, error: "e1", data: "d1" },
    });
    expect(pairing.add(data("0"), "d0", 0)).toMatchObject({ type: "paired" });
    expect(pairing.pendingCount).toBe(0);
  });

  it("lets an id be used again once its pair is complete", () => {
    const pairing = new StreamPairing<string>();
    for (const round of ["a", "b"]) {
      expect(pairing.add(error("0"), `e${round}`, 0)).toEqual({ type: "waiting" });
      expect(pairing.add(data("0"), `d${round}`, 0)).toMatchObject({ type: "paired" });
    }
  });

  it("names a duplicate and keeps the first stream", () => {
    const pairing = new StreamPairing<string>();
    pairing.add(error("7"), "first", 0);
    expect(pairing.add(error("7"), "second", 0)).toEqual({
      type: "duplicate",
      text: "error processing stream for request 7: error stream already assigned",
      pending: { requestId: "7", error: "first", data: undefined },
    });
    expect(pairing.add(data("7"), "d", 0)).toMatchObject({ type: "paired", pair: { error: "first" } });
  });

  it("expires what waited for its time-out, and only that", () => {
    const pairing = new StreamPairing<string>(30_000);
    pairing.add(error("0"), "e0", 0);
    pairing.add(data("1"), "d1", 10_000);
    expect(pairing.expire(29_999)).toEqual([]);
    expect(pairing.expire(30_000)).toEqual([{ requestId: "0", error: "e0", data: undefined }]);
    expect(pairing.pendingCount).toBe(1);
    expect(timeoutText("c1", "0")).toBe("(conn=c1, request=0) timed out waiting for streams");
  });

  it("forgets a stream that ended while it waited", () => {
    const pairing = new StreamPairing<string>();
    pairing.add(error("0"), "e0", 0);
    pairing.remove("e0");
    expect(pairing.pendingCount).toBe(0);
  });
});
