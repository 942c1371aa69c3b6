import { describe, expect, it } from "vitest";
import { Http2Error } from "../../../../protocols/http2/http2-error.ts";

describe("Http2Error", () => {
  it("says what ends, and with which code", () => {
    const error = new Http2Error("stream", 8, "a frame of a wrong length");
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ fault: "stream", code: 8 });
    expect(`${error}`).toBe("Http2Error: a frame of a wrong length");
  });
});
