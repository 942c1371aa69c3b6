import { describe, expect, it } from "vitest";
import { ERROR_CODE, errorCodeName, Http2Error } from "../../../../protocols/http2/http2-error.ts";

describe("Http2Error", () => {
  it("says what ends, and with which code", () => {
    const error = new Http2Error("stream", 8, "a frame of a wrong length");
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ fault: "stream", code: 8 });
    expect(`${error}`).toBe("Http2Error: a frame of a wrong length");
  });
});

describe("error codes", () => {
  it("are numbered as RFC 9113 section 7 lists them, and named by their number", () => {
    expect(ERROR_CODE.HTTP_1_1_REQUIRED).toBe(0xd);
    for (const [name, code] of Object.entries(ERROR_CODE)) expect(errorCodeName(code)).toBe(name);
    expect([errorCodeName(0xe), errorCodeName(0xffff_ffff)]).toEqual([
      "unknown error code 0xe",
      "unknown error code 0xffffffff",
    ]);
  });
});
