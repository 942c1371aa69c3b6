import { isDeepStrictEqual } from "node:util";
import type { Field, Table } from "@sluice/client/internal/config/field";
import { isRecord } from "@sluice/client/internal/config/section";
import { parseYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import { gatewayConfiguration } from "./configuration.ts";

/** Paths such as `timeouts.idle`, in the tables' order. */
interface ChangedFields {
  /** Take effect when the file is read again. */
  readonly reloaded: readonly string[];
  readonly needRestart: readonly string[];
}

/**
 * The fields that differ between two valid configuration files. A written default equals an absent
 * field.
 */
export function changedFields(before: string, after: string): ChangedFields {
  const [old, now] = [before, after].map((text) => parseYamlDocuments(text, "")[0]?.value);
  const changed = changesIn(gatewayConfiguration, "", old, now, false);
  const pathsOf = (isReloaded: boolean) =>
    changed.filter((change) => change.isReloaded === isReloaded).map(({ path }) => path);
  return { reloaded: pathsOf(true), needRestart: pathsOf(false) };
}

interface Change {
  readonly path: string;
  readonly isReloaded: boolean;
}

function changesIn(table: Table, path: string, old: unknown, now: unknown, isReloaded: boolean): Change[] {
  return Object.entries<Field>(table.fields).flatMap(([name, field]) => {
    const [was, is] = [memberOf(old, name) ?? field.default, memberOf(now, name) ?? field.default];
    if (isDeepStrictEqual(was, is)) return [];
    const change = { path: `${path}${name}`, isReloaded: isReloaded || field.isReloaded };
    // A list of sections changes as a whole, and so does an optional section that appears or
    // disappears.
    const isWhole = field.type !== "section" && !(isRecord(was) && isRecord(is));
    if (field.table === undefined || isWhole) return [change];
    return changesIn(field.table, `${change.path}.`, was, is, change.isReloaded);
  });
}

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
}
