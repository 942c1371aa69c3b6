import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeObject } from "../../../../src/api/strategy/decode-object.ts";
import { prepareUpdate, readObject } from "../../../../src/api/strategy/read-object.ts";
import { strategies } from "../../../../src/api/strategy/strategies.ts";
import type { Strategy } from "../../../../src/api/strategy/strategy.ts";
import type { Shape } from "../../../../src/api/validation/shape.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { asV1beta1 } from "../../../support/api-server/ingress-v1beta1.ts";
import { prepareStatusUpdate } from "../../../support/api-server/prepare-write.ts";

const gates = [FeatureGates.defaults, FeatureGates.parse("AllAlpha=true,AllBeta=false")];

/** Values of a shape, with nulls and absent fields wherever Go's decoder lets them pass. */
function anyOf(shape: Shape): fc.Arbitrary<unknown> {
  const nullable = (value: fc.Arbitrary<unknown>) => fc.option(value, { freq: 6, nil: null });
  switch (shape.json) {
    case "string":
      if (shape.format === "time")
        return nullable(fc.constantFrom("2026-11-23T01:02:03Z", "2026-11-23T01:02:03+01:00"));
      return nullable(fc.constantFrom("", "a", "A_", "*.a.b", "/", "Always", "HTTP2", "1.2.3.4", "a/b"));
    case "bool":
      return nullable(fc.boolean());
    case "integer":
      return nullable(fc.constantFrom(-1, 0, 1, 80, 65_536));
    case "bytes":
      return nullable(fc.constantFrom("", "YQ=="));
    case "quantity":
      return nullable(fc.constantFrom<string | number>("1Gi", 5));
    case "any":
      return fc.anything();
    case "integerOrString":
      return nullable(fc.constantFrom<string | number>(-1, 0, 80, "", "http", "A"));
    case "array":
      return nullable(fc.array(anyOf(shape.items), { maxLength: 2 }));
    case "map":
      return nullable(
        fc.dictionary(fc.constantFrom("a", "", "a/b", "constructor"), anyOf(shape.values), { maxKeys: 2 }),
      );
    case "struct": {
      const fields = Object.entries(shape.fields).map(([name, field]) => [name, anyOf(field)] as const);
      return nullable(fc.record(Object.fromEntries(fields), { requiredKeys: [] }));
    }
  }
}

const versions = strategies.flatMap((strategy) => [
  { kind: strategy.kind, apiVersion: strategy.apiVersion, shape: strategy.shape },
  ...Object.entries(strategy.otherVersions).map(([apiVersion, { shape }]) => ({
    kind: strategy.kind,
    apiVersion,
    shape,
  })),
]);

describe("any object of a kind's shape", () => {
  it.each(versions)("$kind of $apiVersion is read or refused, on create and update, and never throws", ({
    kind,
    apiVersion,
    shape,
  }) => {
    const any = anyOf(shape).map((value) => ({ ...(value as object), apiVersion, kind }));
    fc.assert(
      fc.property(any, any, fc.constantFrom(...gates), (next, old, gatesOfRun) => {
        const reading = readObject(next, gatesOfRun);
        expect(reading.isValid || reading.problems.length > 0).toBe(true);
        const [a, b] = [decodeObject(next), decodeObject(old)];
        if (!a.isDecoded || !b.isDecoded) throw new Error("the generator strayed from the shape");
        const strategy: Strategy = a.strategy;
        const write = prepareUpdate(strategy, a.object, b.object, gatesOfRun);
        expect(write.object.kind).toBe(kind);
        prepareStatusUpdate(strategy, a.object, b.object);
        if (strategy.otherVersions[apiVersion] !== undefined) asV1beta1(a.object);
      }),
      { numRuns: 60 },
    );
  });
});
