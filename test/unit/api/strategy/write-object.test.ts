import { describe, expect, it } from "vitest";
import type { ApiObject } from "../../../../src/api/api-object.ts";
import { fieldErrorText } from "../../../../src/api/field-errors.ts";
import { prepareUpdate } from "../../../../src/api/strategy/read-object.ts";
import { strategies, strategyOf } from "../../../../src/api/strategy/strategies.ts";
import type { Strategy } from "../../../../src/api/strategy/strategy.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { prepareStatusUpdate } from "../../../support/api-server/prepare-write.ts";

const gates = FeatureGates.defaults;
const namespaces = strategyOf("Namespace") as Strategy;
const stored: ApiObject = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: "a", uid: "1", creationTimestamp: "2026-01-01T00:00:00Z", generation: 3 },
};

describe("strategies", () => {
  it("are found by kind, each kind and resource once", () => {
    expect(strategyOf("Pod")?.resource).toBe("pods");
    expect(strategyOf("constructor")).toBeUndefined();
    expect(new Set(strategies.map(({ kind }) => kind)).size).toBe(strategies.length);
    expect(new Set(strategies.map(({ resource }) => resource)).size).toBe(strategies.length);
  });
});

describe("prepareUpdate", () => {
  it("keeps what only the server sets, whatever the client sent", () => {
    const metadata = {
      name: "a",
      creationTimestamp: "2020-01-01T00:00:00Z",
      generation: 9,
      labels: { a: "b" },
    };
    const { object, errors } = prepareUpdate(namespaces, { ...stored, metadata }, stored, gates);
    expect(errors).toEqual([]);
    expect(object.metadata).toEqual({ ...stored.metadata, labels: { a: "b" } });
  });

  it("refuses another name, namespace or uid", () => {
    const metadata = { name: "b", uid: "2", namespace: "x" };
    const { errors } = prepareUpdate(namespaces, { ...stored, metadata }, stored, gates);
    expect(errors.map(fieldErrorText)).toEqual([
      'metadata.name: Invalid value: "b": field is immutable',
      'metadata.namespace: Invalid value: "x": field is immutable',
      'metadata.uid: Invalid value: "2": field is immutable',
      "metadata.namespace: Forbidden: not allowed on this type",
    ]);
  });

  it("checks the new object as a create does", () => {
    const metadata = { ...stored.metadata, labels: { a: "-" } };
    const { errors } = prepareUpdate(namespaces, { ...stored, metadata }, stored, gates);
    expect(errors.map(({ path }) => path)).toEqual([["metadata", "labels"]]);
  });
});

describe("prepareStatusUpdate", () => {
  it("is undefined where a kind has no status", () => {
    expect(prepareStatusUpdate(strategyOf("Role") as Strategy, stored, stored)).toBeUndefined();
  });
});
