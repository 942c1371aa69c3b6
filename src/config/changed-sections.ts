import { isDeepStrictEqual } from "node:util";
import { parseYamlDocuments } from "./yaml-documents.ts";

/** What a running gateway takes from a configuration that was read again; everything else needs a restart. */
const RELOADED: readonly string[] = ["policy", "logging"];

export interface ChangedSections {
  /** `policy`, `logging`: in force as soon as they are read. */
  readonly reloaded: readonly string[];
  /** Fields as `listeners.apiServer`, in the order of the file that was read last. */
  readonly needRestart: readonly string[];
}

/** What two configurations say differently, as they are written: a default that is spelled out counts. Both must be valid. */
export function changedSections(before: string, after: string): ChangedSections {
  const [old, now] = [before, after].map((text) => objectOf(parseYamlDocuments(text, "")[0]?.value));
  const reloaded: string[] = [];
  const needRestart: string[] = [];
  for (const name of fieldsOf(old, now)) {
    const [was, is] = [old?.[name], now?.[name]];
    if (isDeepStrictEqual(was, is)) continue;
    if (RELOADED.includes(name)) reloaded.push(name);
    else needRestart.push(...changedFields(name, was, is));
  }
  return { reloaded, needRestart };
}

function changedFields(section: string, was: unknown, is: unknown): string[] {
  const [old, now] = [objectOf(was), objectOf(is)];
  if (old === undefined || now === undefined) return [section];
  return fieldsOf(old, now)
    .filter((name) => !isDeepStrictEqual(old[name], now[name]))
    .map((name) => `${section}.${name}`);
}

type Fields = Readonly<Record<string, unknown>>;

function objectOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function fieldsOf(old: Fields = {}, now: Fields = {}): string[] {
  return [...new Set([...Object.keys(now), ...Object.keys(old)])];
}
