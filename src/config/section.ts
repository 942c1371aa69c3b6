import { dirname, resolve } from "node:path";
import { type ConfigurationProblem, formatPath } from "./configuration-error.ts";
import { formatDuration, parseDuration } from "./duration.ts";
import type { Range } from "./limits.ts";
import type { FileContent, NamedFile } from "./named-file.ts";
import { suggestion } from "./nearest-name.ts";
import { formatQuantity, parseQuantity } from "./quantity.ts";
import type { FieldPath, YamlDocument } from "./yaml-documents.ts";

/** Of one map, each with the name that was probably meant. */
export const MAX_UNKNOWN_FIELDS = 100;

/** Where the problems of one file are collected, and the files that it names. */
export interface ReadContext {
  readonly fileName: string;
  readonly document: Pick<YamlDocument, "lineOf">;
  readonly problems: ConfigurationProblem[];
  readonly files?: NamedFile[];
}

/**
 * One map of the configuration file while it is read. Each method takes a field by name and returns a value that is fit for
 * use: the given one, or the default. What is wrong is noted with its path and line and reading goes on, so that one run
 * names everything. A field that nobody took is unknown: `finish` says so.
 */
export class Section {
  readonly #context: ReadContext;
  readonly #path: FieldPath;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #taken = new Set<string>();

  constructor(context: ReadContext, path: FieldPath, value: unknown) {
    this.#context = context;
    this.#path = path;
    this.#fields = isMap(value) ? value : {};
    if (value !== undefined && !isMap(value)) {
      this.#note(path, `must be a map, got ${describe(value)}`);
    }
  }

  /** True when the file has the field, and not as null. */
  has(name: string): boolean {
    return this.#take(name) !== undefined;
  }

  /** An absent section reads as an empty one: all defaults. */
  section(name: string): Section {
    return new Section(this.#context, [...this.#path, name], this.#take(name));
  }

  /** A list of maps, each read like a section. */
  sections(name: string): readonly Section[] {
    return this.list(name).map((item, index) => {
      const path = [...this.#path, name, index];
      return new Section(this.#context, path, item ?? {});
    });
  }

  /** The items of a list, whatever they are; what is no list reads as an empty one. */
  list(name: string): readonly unknown[] {
    const value = this.#take(name);
    if (value === undefined || Array.isArray(value)) return value ?? [];
    return this.problem(name, `must be a list, got ${describe(value)}`) ?? [];
  }

  string(
    name: string,
    fallback: string,
    check: (value: string) => string | undefined = () => undefined,
  ): string {
    return this.optionalString(name, check) ?? fallback;
  }

  /** `check` returns what is wrong with the value, if anything. */
  optionalString(
    name: string,
    check: (value: string) => string | undefined = () => undefined,
  ): string | undefined {
    const value = this.#take(name);
    if (value === undefined) {
      return undefined;
    }
    if (typeof value !== "string") {
      return this.problem(name, `must be a string, got ${describe(value)}`);
    }
    const wrong = value === "" ? "must not be empty" : check(value);
    return wrong === undefined ? value : this.problem(name, wrong);
  }

  /** An absolute path; a relative one counts from the configuration file's folder. Without `content` it is a file to be written. */
  optionalFile(
    name: string,
    content?: FileContent,
    certificateFile?: string | undefined,
  ): string | undefined {
    const value = this.optionalString(name);
    if (value === undefined) return undefined;
    const { fileName, document, files } = this.#context;
    const file = resolve(dirname(fileName), value);
    const path = [...this.#path, name];
    const place = { source: fileName, line: document.lineOf(path), path: formatPath(path) };
    if (content !== undefined) files?.push({ file, content, certificateFile, ...place });
    return file;
  }

  files(name: string): readonly string[] {
    const folder = dirname(this.#context.fileName);
    return this.strings(name, [], () => undefined).map((value) => resolve(folder, value));
  }

  strings(
    name: string,
    fallback: readonly string[],
    check: (value: string) => string | undefined,
  ): readonly string[] {
    const value = this.#take(name);
    if (value === undefined) {
      return fallback;
    }
    if (!Array.isArray(value)) {
      return this.problem(name, `must be a list of strings, got ${describe(value)}`) ?? fallback;
    }
    value.forEach((item: unknown, index) => {
      const wrong = typeof item === "string" ? check(item) : `must be a string, got ${describe(item)}`;
      if (wrong !== undefined || item === "") {
        this.#note([...this.#path, name, index], wrong ?? "must not be empty");
      }
    });
    return value.filter((item): item is string => typeof item === "string");
  }

  /** At least one of the choices, in the order given. */
  choices<T extends string>(name: string, fallback: readonly T[], choices: readonly T[]): readonly T[] {
    const values = this.strings(name, fallback, (value) => notAmong(value, choices));
    const given = this.#take(name);
    if (Array.isArray(given) && given.length === 0) {
      return this.problem(name, `must name at least one of ${choices.join(", ")}`) ?? fallback;
    }
    return values.filter((value): value is T => notAmong(value, choices) === undefined);
  }

  choice<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const check = (value: string) => notAmong(value, choices);
    return this.string(name, fallback, check) as T;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.#take(name);
    if (value === undefined || typeof value === "boolean") {
      return value ?? fallback;
    }
    return this.problem(name, `must be true or false, got ${describe(value)}`) ?? fallback;
  }

  /** A whole number, as a number or a quantity: 1000, "10k". */
  count(name: string, fallback: number, range: Range): number {
    return this.#number(name, fallback, range, parseQuantity, String, 'a whole number such as 1000 or "10k"');
  }

  /** A whole number, or a word that stands for one. */
  countOr<Word extends string>(name: string, word: Word, fallback: number, range: Range): number | Word {
    return this.#take(name) === word ? word : this.count(name, fallback, range);
  }

  /** Bytes: 65536 or "64Ki". */
  bytes(name: string, fallback: number, range: Range): number {
    return this.#number(
      name,
      fallback,
      range,
      parseQuantity,
      formatQuantity,
      'a number of bytes such as 65536 or "64Ki"',
    );
  }

  /** Milliseconds of a duration: "30s", "4h0m0s". A bare number has no unit, so it is refused. */
  durationMs(name: string, fallback: number, range: Range): number {
    const value = this.#take(name);
    if (typeof value === "number") {
      const meant = Number.isInteger(value) && value >= 0 ? `; did you mean "${value}s"?` : "";
      return (
        this.problem(
          name,
          `must be a duration with its unit such as "30s", got ${describe(value)}${meant}`,
        ) ?? fallback
      );
    }
    return this.#number(
      name,
      fallback,
      range,
      parseDuration,
      formatDuration,
      'a duration such as "30s" or "4h0m0s"',
    );
  }

  /** Every field that is there, for maps whose keys are data. */
  entries(): readonly (readonly [string, unknown])[] {
    for (const name of Object.keys(this.#fields)) this.#taken.add(name);
    return Object.entries(this.#fields).filter(([, value]) => value !== null);
  }

  /** Notes what is wrong with a field; returns nothing, so that readers can `return section.problem(...)`. */
  problem(name: string, message: string): undefined {
    this.#note([...this.#path, name], message);
  }

  /** Notes each field that no reader took. To be called last. */
  finish(): void {
    const unknown = Object.keys(this.#fields).filter((name) => !this.#taken.has(name));
    for (const name of unknown.slice(0, MAX_UNKNOWN_FIELDS)) {
      this.problem(name, `unknown field${suggestion(name, [...this.#taken])}`);
    }
    const more = unknown.slice(MAX_UNKNOWN_FIELDS);
    if (more[0] !== undefined) this.problem(more[0], `unknown field, and ${more.length - 1} more`);
  }

  #number(
    name: string,
    fallback: number,
    range: Range,
    parse: (text: string) => number,
    format: (value: number) => string,
    what: string,
  ): number {
    const value = this.#take(name);
    if (value === undefined) {
      return fallback;
    }
    if (typeof value !== "string" && typeof value !== "number") {
      return this.problem(name, `must be ${what}, got ${describe(value)}`) ?? fallback;
    }
    let number: number;
    try {
      number = typeof value === "number" ? value : parse(value);
    } catch (reason) {
      return this.problem(name, `must be ${what}: ${(reason as Error).message}`) ?? fallback;
    }
    if (!Number.isInteger(number)) {
      return this.problem(name, `must be ${what}, got ${describe(value)}`) ?? fallback;
    }
    if (number < range.min || number > range.max) {
      return (
        this.problem(
          name,
          `must be between ${format(range.min)} and ${format(range.max)}, got ${describe(value)}`,
        ) ?? fallback
      );
    }
    return number;
  }

  /** null is how YAML spells a field without a value: Kubernetes takes it as absent. */
  #take(name: string): unknown {
    this.#taken.add(name);
    return Object.hasOwn(this.#fields, name) ? (this.#fields[name] ?? undefined) : undefined;
  }

  #note(path: FieldPath, message: string): void {
    const { fileName, document, problems } = this.#context;
    problems.push({
      source: fileName,
      line: document.lineOf(path),
      column: 0,
      path: formatPath(path),
      message,
    });
  }
}

/** What is wrong with a value that is not among the choices, and what would be right. */
export function notAmong(value: string, choices: readonly string[]): string | undefined {
  if (choices.includes(value)) {
    return undefined;
  }
  return `${JSON.stringify(value)} is not supported${suggestion(value, choices)}`;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describe(value: unknown): string {
  if (value === null) {
    return "nothing";
  }
  if (Array.isArray(value)) {
    return "a list";
  }
  if (typeof value === "object") {
    return "a map";
  }
  const text = typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : String(value);
  return `the ${typeof value} ${text}`;
}
