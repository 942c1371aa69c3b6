import { describe, expect, it } from "vitest";
import { ERROR_CODE, errorCodeName } from "../../../../protocols/http2/error-codes.ts";

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
