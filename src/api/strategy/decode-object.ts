import { goQuote } from "@sluice/client/internal/api/go-json";
import { isRecord } from "@sluice/client/internal/api/status-body";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import type { ApiObject } from "../api-object.ts";
import { kindShape } from "../validation/kubernetes-shapes.ts";
import { type Shape, shapeProblem } from "../validation/shape.ts";
import { withoutNulls } from "../validation/without-nulls.ts";
import { strategies, strategyOf } from "./strategies.ts";
import type { Strategy } from "./strategy.ts";

/**
 * kubectl requests Strict: unknown fields are errors, and fields that Sluice does not read are
 * checked, too.
 */
export type FieldValidation = "Strict" | "Ignore";

/** A problem with an object, as the API server's whole sentence. */
export interface ObjectProblem {
  readonly path: FieldPath;
  readonly message: string;
}

/**
 * An object that is decoded but not validated: right shape, storage version, defaults filled in.
 */
type Decoding =
  | {
      readonly isDecoded: true;
      readonly object: ApiObject;
      readonly strategy: Strategy;
      readonly shape: Shape;
    }
  | { readonly isDecoded: false; readonly problem: ObjectProblem };

/** The first half of reading untrusted data; the API server answers 400 if it fails. */
export function decodeObject(value: unknown, fieldValidation: FieldValidation = "Ignore"): Decoding {
  if (!isRecord(value)) {
    return refused([], "a Kubernetes object is expected: a mapping with apiVersion and kind");
  }
  const { apiVersion, kind } = value;
  if (typeof kind !== "string" || kind === "") return refused(["kind"], "Object 'Kind' is missing");
  if (typeof apiVersion !== "string" || apiVersion === "") {
    return refused(["apiVersion"], "Object 'apiVersion' is missing");
  }
  const strategy = strategyOf(kind);
  const version = strategy && versionsOf(strategy).find(({ name }) => name === apiVersion);
  if (strategy === undefined || version === undefined) {
    const unmatched = `no matches for kind ${goQuote(kind)} in version ${goQuote(apiVersion)}`;
    const sentence = `${unmatched}; ${knownText(strategy)}`;
    return refused(["kind"], sentence);
  }
  const whole = fieldValidation === "Strict" ? kindShape(apiVersion, kind) : undefined;
  const misshapen = (whole && shapeProblem(value, whole)) ?? shapeProblem(value, version.shape);
  if (misshapen) {
    return refused(misshapen.path, `${cannotBeHandled(kind, apiVersion)}: ${misshapen.message}`);
  }
  const given = completed(withoutNulls(value, version.shape));
  const held = strategy.otherVersions[apiVersion]?.toHeld(given) ?? given;
  return { isDecoded: true, object: strategy.withDefaults(held), strategy, shape: version.shape };
}

/** The API server omits the version's group here. */
export function cannotBeHandled(kind: string, apiVersion: string): string {
  const version = apiVersion.slice(apiVersion.indexOf("/") + 1);
  return `${kind} in version ${goQuote(version)} cannot be handled as a ${kind}`;
}

function versionsOf({ apiVersion, shape, otherVersions }: Strategy) {
  const others = Object.entries(otherVersions).map(([name, conversion]) => ({
    name,
    shape: conversion.shape,
  }));
  return [{ name: apiVersion, shape }, ...others];
}

/** The versions of a known kind, or else the known kinds. */
function knownText(strategy: Strategy | undefined): string {
  if (strategy === undefined)
    return `known here: ${[...strategies.map(({ kind }) => kind), "List"].join(", ")}`;
  return `known here in version ${versionsOf(strategy)
    .map(({ name }) => goQuote(name))
    .join(" and ")}`;
}

function refused(path: FieldPath, message: string): Decoding {
  return { isDecoded: false, problem: { path, message } };
}

/** Adds the parts that validation reads; Go decodes an absent struct as an empty one. */
function completed(value: Record<string, unknown>): ApiObject {
  const metadata = isRecord(value.metadata) ? value.metadata : {};
  const spec = value.kind === "Pod" ? { spec: value.spec ?? {} } : {};
  return { ...value, metadata, ...spec } as unknown as ApiObject;
}
