import type { ConfigurationProblem } from "@sluice/client/internal/config/configuration-error";
import type { DescribedFlag, Field, FieldFlag, Table } from "@sluice/client/internal/config/field";
import { flagProblem, GivenFlags } from "@sluice/client/internal/config/given-flags";

/** Values of field flags, by name without dashes. */
export type FlagValues = Readonly<Record<string, string | undefined>>;

export interface FlagOfField extends DescribedFlag {
  /** The path of the field's section. */
  readonly section: string;
}

/** The flags of the table's fields and of the sections below it, in order. */
export function flagsOf(table: Table, section = ""): readonly FlagOfField[] {
  const own = Object.entries<Field>(table.fields).flatMap(([name, { flag, sentence, table: below }]) => [
    ...(flag === undefined ? [] : [{ ...flag, sentence, section }]),
    ...(below === undefined ? [] : flagsOf(below, section === "" ? name : `${section}.${name}`)),
  ]);
  return [...own, ...table.otherFlags.map((flag) => ({ ...flag, section }))];
}

/**
 * Parses flags that override a file. A flag's own problem is noted when its field is read; others
 * go to `problems`.
 */
export function readFlags(
  root: Table,
  flags: FlagValues,
  file: unknown,
  problems: ConfigurationProblem[],
): GivenFlags {
  const given = new GivenFlags();
  setFrom(root, [], file);
  return given;

  function setFrom(table: Table, path: readonly string[], value: unknown): void {
    for (const [name, field] of Object.entries<Field>(table.fields)) {
      const place = [...path, name];
      for (const flag of [...field.impliedBy, field.flag]) if (flag !== undefined) set(place, flag);
      if (field.table === undefined) continue;
      const below = memberOf(value, name);
      setFrom(field.table, place, below);
      dropOrphans(field.table, place, below);
    }
    for (const flag of table.otherFlags) {
      const { problem } = readFlag(flag, flags[flag.name]) ?? {};
      if (problem !== undefined) problems.push(problem);
    }
  }

  function set(place: readonly string[], flag: FieldFlag): void {
    const read = readFlag(flag, flags[flag.name]);
    if (read !== undefined) given.set(place, read);
  }

  function dropOrphans(table: Table, path: readonly string[], value: unknown): void {
    const { keyField, orphanFlag } = table;
    if (keyField === undefined || value != null || given.firstWithin([...path, keyField]) !== undefined)
      return;
    given.deleteWithin(path);
    for (const flag of flagsOf(table)) {
      const text = flags[flag.name];
      const message = text === undefined ? undefined : orphanFlag(flag.name);
      if (message === undefined) continue;
      const { problem } = readFlag(flag, text) ?? {};
      if (problem !== undefined && !table.otherFlags.some(({ name }) => name === flag.name))
        problems.push(problem);
      problems.push(flagProblem(flag.name, message));
    }
  }
}

function readFlag(flag: FieldFlag, text: string | undefined) {
  if (text === undefined) return undefined;
  try {
    const value = flag.read(text);
    return value === undefined ? undefined : { flag: flag.name, value };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { flag: flag.name, value: null, problem: flagProblem(flag.name, error.message) };
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
