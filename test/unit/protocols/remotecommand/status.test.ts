import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeStatus,
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  successStatus,
} from "../../../../protocols/remotecommand/outcome.ts";

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const read = (text: string) => decodeStatus(Uint8Array.from(Buffer.from(text)));

describe("a Status as Go writes it", () => {
  it.each([
    [successStatus(), '{"metadata":{},"status":"Success"}'],
    [
      exitCodeStatus(7, "error executing command [sh -c x], exit code 7"),
      '{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: error executing command [sh -c x], exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}',
    ],
    [
      internalErrorStatus("a <b> & \u2028c\u2029"),
      '{"metadata":{},"status":"Failure","message":"Internal error occurred: a \\u003cb\\u003e \\u0026 \\u2028c\\u2029","reason":"InternalError","details":{"causes":[{"message":"a \\u003cb\\u003e \\u0026 \\u2028c\\u2029"}]},"code":500}',
    ],
  ])("%#", (status, json) => {
    expect(textOf(encodeStatus(status))).toBe(json);
    expect(read(json)).toEqual(status);
  });

  it("is read back, whatever its texts are", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(255), (text, code) => {
        for (const status of [internalErrorStatus(text), exitCodeStatus(code, text)]) {
          const bytes = encodeStatus(status);
          expect(textOf(bytes)).not.toMatch(/[<>&\u2028\u2029]/);
          expect(decodeStatus(bytes)).toEqual(status);
        }
      }),
    );
  });
});

describe("decodeStatus", () => {
  it.each([
    "",
    "{",
    "null",
    "[]",
    '"Success"',
    "{}",
    '{"status":1}',
    '{"status":null}',
  ])("%j is none", (text) => {
    expect(read(text)).toBeUndefined();
  });

  it.each([
    [
      '{"status":"Failure","metadata":[],"message":1,"reason":null,"details":"x","code":"500"}',
      { status: "Failure" },
    ],
    ['{"status":"Failure","details":{"causes":{}}}', { status: "Failure", details: {} }],
    [
      '{"status":"Failure","details":{"causes":[null,1,{"reason":1,"message":"a"},{"reason":"b"}]}}',
      { status: "Failure", details: { causes: [{ message: "a" }, { reason: "b" }] } },
    ],
  ])("fields of a wrong type count as absent: %s", (text, status) => {
    expect(read(text)).toEqual(status);
  });
});
