import { type ConfigurationProblem, formatPath } from "./configuration-error.ts";
import type { FieldPath } from "./yaml-field-places.ts";

/** A field's value from the command line. */
interface GivenFlag {
  /** Without dashes. */
  readonly flag: string;
  /** In the file's form; null removes the file's value. */
  readonly value: unknown;
  /** Set if the flag's text is invalid. */
  readonly problem?: ConfigurationProblem | undefined;
}

/** Values from flags, by the field's path. */
export class GivenFlags {
  readonly #byPath = new Map<string, GivenFlag>();

  set(path: FieldPath, given: GivenFlag): void {
    this.#byPath.set(formatPath(path), given);
  }

  deleteWithin(path: FieldPath): void {
    for (const [key] of this.#within(path)) this.#byPath.delete(key);
  }

  at(path: FieldPath): GivenFlag | undefined {
    return this.#byPath.size === 0 ? undefined : this.#byPath.get(formatPath(path));
  }

  /** The flag for the field, or for the nearest section around it. */
  around(path: FieldPath): GivenFlag | undefined {
    if (this.#byPath.size === 0 || path.length === 0) return undefined;
    return this.at(path) ?? this.around(path.slice(0, -1));
  }

  /** The first flag that sets the field, or a field below it. */
  firstWithin(path: FieldPath): string | undefined {
    return this.#within(path).find(([, { value, problem }]) => value !== null || problem !== undefined)?.[1]
      .flag;
  }

  #within(path: FieldPath): [string, GivenFlag][] {
    if (this.#byPath.size === 0) return [];
    const place = formatPath(path);
    return Array.from(this.#byPath).filter(([key]) => key === place || key.startsWith(`${place}.`));
  }
}

/** The position of a flag's problems: a command line has no lines. */
export function flagPlace(flag: string): Omit<ConfigurationProblem, "message"> {
  return { source: `--${flag}`, line: 0, column: 0, path: "" };
}

export function flagProblem(flag: string, message: string): ConfigurationProblem {
  return { ...flagPlace(flag), message };
}
