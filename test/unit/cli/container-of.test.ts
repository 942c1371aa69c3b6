import { expect, it } from "vitest";
import { containerOf } from "../../../src/cli/client/find-pods.ts";
import type { PodObject } from "../../../src/cli/client/pod-objects.ts";

const metadata = { name: "web", namespace: "default" };

it.each<[what: string, pod: Omit<PodObject, "metadata">]>([
  ["no spec", {}],
  ["no containers", { spec: {} }],
  ["empty lists of containers", { spec: { containers: [], initContainers: [] } }],
])("a pod with %s has none of the containers that are asked for", (_, pod) => {
  const found = (name?: string) => containerOf({ metadata, ...pod }, name);
  expect(() => found()).toThrow("pod web has no container");
  expect(() => found("main")).toThrow("container main not found in pod web");
});
