import { dirname, resolve } from "node:path";
import { type ConfigurationProblem, formatPath, withoutUserinfo } from "./configuration-error.ts";
import { flagPlace, flagProblem, type GivenFlags } from "./given-flags.ts";
import type { FileContent, NamedFile } from "./named-file-text.ts";
import { suggestion } from "./nearest-name.ts";
import type { YamlDocument } from "./yaml-documents.ts";
import type { FieldPath } from "./yaml-field-places.ts";

/**
 * Unknown fields of one map that are named, each with a suggestion. Past it they are only counted.
 */
const MAX_UNKNOWN_FIELDS = 100;

/** Stands for standard output in a file to write. */
export const STANDARD_OUTPUT = "-";

/** Collects one file's problems, and the files that it names. */
interface ReadContext {
  readonly fileName: string;
  readonly document: Pick<YamlDocument, "placeOf">;
  readonly problems: ConfigurationProblem[];
  readonly files?: NamedFile[];
  /** Values that override the file's. */
  readonly flags?: GivenFlags;
  /** A field of the root whose values are not quoted in problems, because they may be secrets. */
  readonly secretField?: string;
}

/**
 * Reads one map of a file. Methods read fields by name, and note problems with path and line.
 * `finish` reports fields that no method has read.
 */
export class Section {
  readonly #context: ReadContext;
  readonly #path: FieldPath;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #isInFile: boolean;
  readonly #taken = new Set<string>();

  constructor(context: ReadContext, path: FieldPath, value: unknown) {
    this.#context = context;
    this.#path = path;
    this.#isInFile = value !== undefined;
    this.#fields = isRecord(value) ? value : {};
    if (value !== undefined && !isRecord(value)) {
      this.#note(path, `must be a map, got ${this.#describe(value)}`);
    }
  }

  /** True if the file sets the field other than to null, or a flag sets it or a field below it. */
  has(name: string): boolean {
    return this.#take(name) !== undefined || this.flagWithin(name) !== undefined;
  }

  /** The flag that sets the field, without dashes. */
  flagOf(name: string): string | undefined {
    return this.#context.flags?.at(this.#pathOf(name))?.flag;
  }

  /** The first flag that sets the field or one below it. */
  flagWithin(name: string): string | undefined {
    return this.#context.flags?.firstWithin(this.#pathOf(name));
  }

  /**
   * A section; if neither the file nor a flag sets it, `ifAbsent` or an empty one with all
   * defaults.
   */
  section(name: string, ifAbsent?: object): Section {
    const value = this.#take(name) ?? (this.flagWithin(name) === undefined ? ifAbsent : undefined);
    return new Section(this.#context, [...this.#path, name], value);
  }

  /** A list of maps, each read as a section. */
  sections(name: string): readonly Section[] {
    return this.list(name).map((item, index) => {
      const path = [...this.#path, name, index];
      return new Section(this.#context, path, item ?? {});
    });
  }

  /** A list item's position, for noting a problem there. */
  item(name: string, index: number): Pick<Section, "problem"> {
    return new Section(this.#context, [...this.#path, name, index], {});
  }

  /** A list's items, unchecked; a value that is not a list reads as empty. */
  list(name: string): readonly unknown[] {
    const value = this.#take(name);
    if (value === undefined || Array.isArray(value)) return value ?? [];
    return this.problem(name, `must be a list, got ${this.#describe(value)}`) ?? [];
  }

  /** The parsed value; `parse` throws RangeError with the problem. */
  parsed<Value>(name: string, parse: (value: unknown) => Value): Value | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    try {
      return parse(value);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return this.problem(name, error.message);
    }
  }

  /** `check` returns the value's problem, or undefined. */
  optionalString(name: string, check: Check = anything): string | undefined {
    return this.parsed(name, (value) => {
      if (typeof value !== "string") throw new RangeError(`must be a string, got ${this.#describe(value)}`);
      const wrong = value === "" ? "must not be empty" : check(value);
      if (wrong !== undefined) throw new RangeError(wrong);
      return value;
    });
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    return this.optionalString(name, (value) => notAmong(value, choices)) as T | undefined;
  }

  boolean(name: string): boolean | undefined {
    return this.parsed(name, (value) => {
      if (typeof value === "boolean") return value;
      throw new RangeError(`must be true or false, got ${this.#describe(value)}`);
    });
  }

  /**
   * An absolute path, resolved from the file's folder. Without `content` the file is for writing,
   * and may be `-`. `certificate` names the field with a key's certificate.
   */
  optionalFile(name: string, content?: FileContent, certificate?: string): string | undefined {
    const value = this.optionalString(name, fileName);
    if (value === undefined) return undefined;
    if (content === undefined && value === STANDARD_OUTPUT) return value;
    const file = this.#absolute(value);
    if (content === undefined) return file;
    const beside = certificate === undefined ? undefined : this.#take(certificate);
    // If a flag's certificate does not fit the file's key, report it at the flag.
    const place = this.flagOf(name) ?? (certificate && this.flagOf(certificate));
    this.#context.files?.push({
      file,
      content,
      certificateFile: typeof beside === "string" ? this.#absolute(beside) : undefined,
      ...(place === undefined ? this.#placeOf(this.#pathOf(name)) : flagPlace(place)),
    });
    return file;
  }

  files(name: string): readonly string[] | undefined {
    return this.strings(name, fileName)?.map((value) => this.#absolute(value));
  }

  strings(name: string, check: Check = anything): readonly string[] | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) {
      return this.problem(name, `must be a list of strings, got ${this.#describe(value)}`);
    }
    value.forEach((item: unknown, index) => {
      const wrong = typeof item === "string" ? check(item) : `must be a string, got ${this.#describe(item)}`;
      if (wrong !== undefined || item === "") {
        this.#note([...this.#path, name, index], wrong ?? "must not be empty");
      }
    });
    return value.filter((item): item is string => typeof item === "string");
  }

  /** At least one of the choices, in the given order. */
  choices<T extends string>(name: string, choices: readonly T[]): readonly T[] | undefined {
    const values = this.strings(name, (value) => notAmong(value, choices));
    const given = this.#take(name);
    if (Array.isArray(given) && given.length === 0) {
      return this.problem(name, `must name at least one of ${choices.join(", ")}`);
    }
    return values?.filter((value): value is T => notAmong(value, choices) === undefined);
  }

  /** Every field, for maps with arbitrary keys. */
  entries(): readonly (readonly [string, unknown])[] {
    for (const name of Object.keys(this.#fields)) this.#taken.add(name);
    return Object.entries(this.#fields).filter(([, value]) => value !== null);
  }

  /** Every field parsed; those with problems are left out. */
  parsedEntries<Value>(parse: (value: unknown) => Value): Readonly<Record<string, Value>> {
    const parsed = this.entries().flatMap(([name]) => {
      const value = this.parsed(name, parse);
      return value === undefined ? [] : [[name, value] as const];
    });
    return Object.fromEntries(parsed);
  }

  /**
   * Notes a field's problem; returns undefined, so that readers can `return section.problem(...)`.
   */
  problem(name: string, message: string): undefined {
    const flag = Object.hasOwn(this.#fields, name) ? undefined : this.flagWithin(name);
    if (flag === undefined) this.#note(this.#pathOf(name), message);
    else this.#context.problems.push(flagProblem(flag, message));
  }

  /** Notes a missing field; if a flag began the section, as that flag's problem. */
  missing(name: string, message: string, flag: string | undefined): void {
    const first = this.#isInFile ? undefined : this.#context.flags?.firstWithin(this.#path);
    if (first !== undefined && flag !== undefined)
      this.#context.problems.push(flagProblem(first, `needs --${flag} too`));
    else this.problem(name, message);
  }

  /** Notes each field that is set without the other one. */
  together(one: PairedField, other: PairedField): void {
    for (const [present, absent] of [
      [one, other],
      [other, one],
    ] as const) {
      if (!this.has(present.name) || this.has(absent.name)) continue;
      const flag = this.flagOf(present.name);
      if (flag !== undefined) this.problem(present.name, `needs --${absent.flag} too`);
      else this.problem(absent.name, `is required with ${present.name}`);
    }
  }

  /** Reports every field that was not read. Call it last. */
  finish(): void {
    const unknown = Object.keys(this.#fields).filter((name) => !this.#taken.has(name));
    for (const name of unknown.slice(0, MAX_UNKNOWN_FIELDS)) {
      this.problem(name, `unknown field${suggestion(name, [...this.#taken])}`);
    }
    const more = unknown.slice(MAX_UNKNOWN_FIELDS);
    if (more[0] !== undefined) this.problem(more[0], `unknown field, and ${more.length - 1} more`);
  }

  /** null is YAML's spelling of a field without a value; Kubernetes treats it as absent. */
  #take(name: string): unknown {
    this.#taken.add(name);
    const { flags, problems } = this.#context;
    const given = flags?.at(this.#pathOf(name));
    if (given?.problem !== undefined && !problems.includes(given.problem)) problems.push(given.problem);
    if (given !== undefined) return given.value ?? undefined;
    return Object.hasOwn(this.#fields, name) ? (this.#fields[name] ?? undefined) : undefined;
  }

  #describe(value: unknown): string {
    const isSecret = this.#path[0] === this.#context.secretField && typeof value !== "object";
    return isSecret ? `a ${typeof value}` : describe(value);
  }

  #pathOf(name: string): FieldPath {
    return [...this.#path, name];
  }

  #absolute(file: string): string {
    return resolve(dirname(this.#context.fileName), file);
  }

  #placeOf(path: FieldPath): Omit<ConfigurationProblem, "message"> {
    const { fileName, document, flags } = this.#context;
    const flag = flags?.around(path)?.flag;
    if (flag !== undefined) return flagPlace(flag);
    return { source: fileName, ...document.placeOf(path), path: formatPath(path) };
  }

  #note(path: FieldPath, message: string): void {
    this.#context.problems.push({ ...this.#placeOf(path), message });
  }
}

/** One of two fields that must be set together, and its flag. */
interface PairedField {
  readonly name: string;
  readonly flag: string | undefined;
}

type Check = (value: string) => string | undefined;

const anything: Check = () => undefined;
const fileName: Check = (value) => (value.includes("\0") ? "must not contain NUL" : undefined);

/** The problem with a value outside the choices, with a suggestion. */
export function notAmong(value: string, choices: readonly string[]): string | undefined {
  if (choices.includes(value)) return undefined;
  return `${JSON.stringify(value)} is not supported${suggestion(value, choices)}`;
}

/** A map of JSON or YAML. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value in words, for messages: `the number 1`. */
export function describe(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  const text =
    typeof value === "string" ? JSON.stringify(withoutUserinfo(value).slice(0, 80)) : String(value);
  return `the ${typeof value} ${text}`;
}
