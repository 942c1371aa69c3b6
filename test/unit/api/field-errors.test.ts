import { describe, expect, it } from "vitest";
import {
  aggregateText,
  duplicate,
  type FieldError,
  fieldErrorText,
  forbiddenField,
  invalidObject,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from "../../../src/api/field-errors.ts";

describe("field errors", () => {
  const rows: readonly [FieldError, string][] = [
    [required(["spec", "containers"]), "spec.containers: Required value"],
    [required(["metadata", "name"], "say it"), "metadata.name: Required value: say it"],
    [invalidValue(["a", 0, "b"], "x\n", "bad"), 'a[0].b: Invalid value: "x\\n": bad'],
    [invalidValue(["port"], 0, "bad"), "port: Invalid value: 0: bad"],
    [invalidValue(["on"], false, "bad"), "on: Invalid value: false: bad"],
    [invalidValue(["list"], undefined, "bad"), "list: Invalid value: null: bad"],
    [invalidValue(["list"], [], "bad"), "list: Invalid value: []: bad"],
    [
      duplicate(["a", 1], { type: "t", address: "<" }),
      'a[1]: Duplicate value: {"type":"t","address":"\\u003c"}',
    ],
    [notSupported(["p"], "X", ["TCP", "SCTP"]), 'p: Unsupported value: "X": supported values: "TCP", "SCTP"'],
    [forbiddenField(["ns"], "not here"), "ns: Forbidden: not here"],
    [tooLong(["a"], 3), "a: Too long: may not be more than 3 bytes"],
    [{ type: "FieldValueNotFound", path: ["a"], badValue: "x", detail: "" }, 'a: Not found: "x"'],
  ];
  it.each(rows)("%o", (error, text) => {
    expect(fieldErrorText(error)).toBe(text);
    expect(aggregateText([error, error])).toBe(text);
  });

  it("several stand in brackets", () => {
    expect(aggregateText([required(["a"]), required(["b"])])).toBe("[a: Required value, b: Required value]");
  });

  it("answer as 422 with a cause each, whose message has no field", () => {
    const { status } = invalidObject("Pod", "web", [required(["a"]), invalidValue(["b"], 1, "no")]);
    expect(status).toMatchObject({
      message: 'Pod "web" is invalid: [a: Required value, b: Invalid value: 1: no]',
      reason: "Invalid",
      code: 422,
      details: {
        name: "web",
        kind: "Pod",
        causes: [
          { reason: "FieldValueRequired", message: "Required value", field: "a" },
          { reason: "FieldValueInvalid", message: "Invalid value: 1: no", field: "b" },
        ],
      },
    });
  });
});
