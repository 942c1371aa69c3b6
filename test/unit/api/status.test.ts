import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  badRequest,
  forbidden,
  genericError,
  internalError,
  invalid,
  methodNotAllowed,
  notAcceptable,
  notFound,
  type StatusError,
  serviceUnavailable,
  tooManyRequests,
  unauthorized,
  unknownPath,
} from "../../../packages/client/src/api/status.ts";
import { statusBody, statusOfBody } from "../../../packages/client/src/api/status-body.ts";

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const head = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",';

/** The bodies as kube-apiserver writes them, without their last newline. */
const rows: readonly [name: string, error: StatusError, body: string][] = [
  [
    "not found",
    notFound("pods", "web"),
    '"message":"pods \\"web\\" not found","reason":"NotFound","details":{"name":"web","kind":"pods"},"code":404}',
  ],
  [
    "bad request",
    badRequest("Upgrade request required"),
    '"message":"Upgrade request required","reason":"BadRequest","code":400}',
  ],
  ["unauthorized", unauthorized(), '"message":"Unauthorized","reason":"Unauthorized","code":401}'],
  [
    "forbidden",
    forbidden("pods", "web", "no"),
    '"message":"pods \\"web\\" is forbidden: no","reason":"Forbidden","details":{"name":"web","kind":"pods"},"code":403}',
  ],
  [
    "forbidden without a reason",
    forbidden("pods", "web", ""),
    '"message":"pods \\"web\\" is forbidden: ","reason":"Forbidden","details":{"name":"web","kind":"pods"},"code":403}',
  ],
  [
    "forbidden collection",
    forbidden("pods", "", "no"),
    '"message":"pods is forbidden: no","reason":"Forbidden","details":{"kind":"pods"},"code":403}',
  ],
  [
    "forbidden path",
    forbidden("", "", "no"),
    '"message":"forbidden: no","reason":"Forbidden","details":{},"code":403}',
  ],
  [
    "unknown path",
    unknownPath(),
    '"message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}',
  ],
  [
    "method",
    methodNotAllowed("POST", "pods"),
    '"message":"the server does not allow this method on the requested resource (post pods)","reason":"MethodNotAllowed","details":{"kind":"pods"},"code":405}',
  ],
  [
    "not acceptable",
    notAcceptable(["application/json"]),
    '"message":"only the following media types are accepted: application/json","reason":"NotAcceptable","code":406}',
  ],
  [
    "too many",
    tooManyRequests("later", 5),
    '"message":"later","reason":"TooManyRequests","details":{"retryAfterSeconds":5},"code":429}',
  ],
  [
    "internal",
    internalError("no <x>"),
    '"message":"Internal error occurred: no \\u003cx\\u003e","reason":"InternalError","details":{"causes":[{"message":"no \\u003cx\\u003e"}]},"code":500}',
  ],
  [
    "unavailable",
    serviceUnavailable("stopping"),
    '"message":"stopping","reason":"ServiceUnavailable","code":503}',
  ],
  [
    "generic: no reason key",
    genericError(500, "error dialing backend: EOF"),
    '"message":"error dialing backend: EOF","code":500}',
  ],
];

describe("Status bodies", () => {
  it.each(rows)("%s", (_, error, rest) => {
    expect(textOf(statusBody(error.status))).toBe(`${head}${rest}\n`);
    expect(statusOfBody(statusBody(error.status))).toEqual(error.status);
    expect(error.message).toBe(error.status.message);
  });

  it("escape what Go escapes, and quote names as Go does", () => {
    expect(textOf(statusBody(badRequest("a<b>&\u2028\u2029é").status))).toContain(
      '"a\\u003cb\\u003e\\u0026\\u2028\\u2029é"',
    );
    expect(notFound("pods", 'a"\\u0001\u0001\u0007\u007f').message).toBe(
      'pods "a\\"\\\\u0001\\x01\\a\\x7f" not found',
    );
  });
});

describe("statusBody with a bound", () => {
  const maxBytes = 1_024;

  it("leaves a body alone that fits", () => {
    const { status } = notFound("pods", "web");
    expect(statusBody(status, maxBytes)).toEqual(statusBody(status));
  });

  it.each([
    ["a long message", badRequest("x".repeat(5_000)), "x..."],
    ["a message of escapes", genericError(500, "<".repeat(5_000)), "<..."],
    ["a long name, which details repeat", notFound("pods", "n".repeat(5_000)), "n..."],
    ["causes", invalid("Pod", "web", "e".repeat(500), [{ message: "c".repeat(500) }]), "e"],
  ])("cuts %s", (_, error, end) => {
    const body = statusBody(error.status, maxBytes);
    expect(body.byteLength).toBeLessThan(maxBytes);
    const read = statusOfBody(body);
    expect([read?.code, read?.reason]).toEqual([error.code, error.status.reason]);
    expect(read?.message?.endsWith(end)).toBe(true);
    expect(read?.message?.length).toBeGreaterThan(100);
  });

  it("stays below it and decodable, whatever the message", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 2_000 }),
        fc.integer({ min: 200, max: 2_000 }),
        (message, bound) => {
          const body = statusBody(genericError(500, message).status, bound);
          expect(body.byteLength).toBeLessThan(bound);
          const cut = statusOfBody(body)?.message ?? "";
          expect(message.startsWith(cut.replace(/\.\.\.$/, "")) || cut === message).toBe(true);
        },
      ),
    );
  });
});

describe("statusOfBody", () => {
  it.each([
    "",
    "no json",
    "[]",
    "null",
    '{"kind":"Pod","apiVersion":"v1"}',
    '{"kind":"Status","apiVersion":"v1","status":7}',
  ])("finds none in %j", (text) => {
    expect(statusOfBody(text)).toBeUndefined();
  });

  it("takes fields of a wrong type for absent", () => {
    const text =
      '{"kind":"Status","apiVersion":"v1","metadata":[],"status":"Failure","message":1,"reason":{},"details":{"name":1,"causes":[1,{"field":"f"}]},"code":"5"}';
    expect(statusOfBody(text)).toEqual({
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      details: { causes: [{ field: "f" }] },
      code: 0,
    });
  });

  it("never throws", () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void statusOfBody(bytes)));
    fc.assert(fc.property(fc.json(), (text) => void statusOfBody(text)));
  });
});
