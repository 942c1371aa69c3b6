import {
  Composer,
  type CST,
  type Document,
  isCollection,
  isMap,
  isScalar,
  LineCounter,
  type Node,
  Parser,
  visit,
  type YAMLMap,
} from "yaml";
import {
  ConfigurationError,
  type ConfigurationProblem,
  MAX_QUOTED_CHARACTERS,
  quotedLine,
} from "./configuration-error.ts";
import { KUBERNETES_TAGS } from "./kubernetes-yaml.ts";
import { type PlainJson, plainJson } from "./plain-json.ts";
import { childrenOf, MAX_MERGED_ENTRIES, MAX_YAML_ALIASES, MergedEntries } from "./yaml-bounds.ts";
import { type AliasTargets, type FieldPath, FieldPlaces } from "./yaml-field-places.ts";

interface FilePlace {
  readonly line: number;
  readonly column: number;
}

export interface YamlDocument {
  /** Plain JSON-like data, not validated. */
  readonly value: unknown;
  /** Line and column, from 1, of the field or of its nearest existing parent. */
  placeOf(path: FieldPath): FilePlace;
  lineOf(path: FieldPath): number;
}

interface YamlOptions {
  /** The last of equal keys counts, as in client-go's kubeconfigs; otherwise they are a problem. */
  readonly lastKeyWins?: boolean;
  /** Resolves words by YAML 1.1, as kubectl does for manifests; otherwise by YAML 1.2. */
  readonly isManifest?: boolean;
  /** MAX_YAML_CHARACTERS for manifests by default, MAX_CONFIGURATION_CHARACTERS for others. */
  readonly maxCharacters?: number;
}

/** Replaces a missing document. */
export const EMPTY_DOCUMENT: Pick<YamlDocument, "value" | "placeOf"> = {
  value: undefined,
  placeOf: () => ({ line: 1, column: 1 }),
};

/** A YAML file: far above any manifest. Past it, it is refused before it is parsed. */
const MAX_YAML_CHARACTERS = 16 * 1024 * 1024;
/**
 * A configuration, policy or webhook's kubeconfig; YAML's worst takes 10 us for each. Past it, the
 * file is refused before it is parsed.
 */
const MAX_CONFIGURATION_CHARACTERS = 1024 * 1024;
/** Levels of a YAML file; a Pod has less than 20. Past it, it is refused with its line. */
const MAX_YAML_DEPTH = 100;
/** Nodes that all aliases expand to; "billion laughs" has 10^9. Past it: refused. */
const MAX_ALIASED_NODES = 10_000;

/**
 * Reads a file's YAML (or JSON) documents; leaves empty ones out. Throws `ConfigurationError` with
 * the first syntax error, or with one document's duplicate keys and aliases.
 */
export function parseYamlDocuments(
  text: string,
  fileName: string,
  options: YamlOptions = {},
): YamlDocument[] {
  return inOneStep(readYamlDocuments(text, fileName, options));
}

function inOneStep<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Reads one document at a time, so that large files do not block the event loop. */
export function* readYamlDocuments(
  text: string,
  fileName: string,
  {
    lastKeyWins = false,
    isManifest = false,
    maxCharacters = isManifest ? MAX_YAML_CHARACTERS : MAX_CONFIGURATION_CHARACTERS,
  }: YamlOptions = {},
): Generator<void, YamlDocument[]> {
  if (text.length > maxCharacters) {
    const message = `the file has ${text.length} characters, at most ${maxCharacters} are read`;
    throw new ConfigurationError([{ source: fileName, line: 0, column: 0, path: "", message }]);
  }
  // YAML 1.2 section 5.1. Must not print a binary that was named by mistake.
  if (text.includes("\0")) {
    const message = "the file is not text: it has NUL bytes";
    throw new ConfigurationError([{ source: fileName, line: 0, column: 0, path: "", message }]);
  }
  // The YAML reader counts a scalar as a level, too. It refuses deeper documents, and names the line.
  const json = plainJson(text, MAX_YAML_DEPTH - 2);
  yield;
  if (json === undefined) return yield* composeDocuments(text, fileName, { lastKeyWins, isManifest });
  return [
    jsonDocument(json, text, () => inOneStep(composeDocuments(text, fileName, { lastKeyWins, isManifest }))),
  ];
}

/** Calls `compose` at most once, when the place of a field is needed. */
function jsonDocument(
  { value, offset, itemOffsets }: PlainJson,
  text: string,
  compose: () => YamlDocument[],
): YamlDocument {
  let lines: LineCounter | undefined;
  let composed: YamlDocument[] | undefined;
  const placeOf = (path: FieldPath): FilePlace => {
    const [list, index] = path;
    const isItem = path.length === 2 && list === "items" && typeof index === "number";
    const known = path.length === 0 ? offset : isItem ? itemOffsets[index] : undefined;
    if (known === undefined) {
      composed ??= compose();
      return composed[0]?.placeOf(path) ?? EMPTY_DOCUMENT.placeOf(path);
    }
    lines ??= lineStartsOf(text);
    const { line, col } = lines.linePos(known);
    return { line, column: col };
  };
  return { value, placeOf, lineOf: (path) => placeOf(path).line };
}

function lineStartsOf(text: string): LineCounter {
  const lines = new LineCounter();
  for (let at = 0; at !== 0 || lines.lineStarts.length === 0; at = text.indexOf("\n", at) + 1)
    lines.addNewLine(at);
  return lines;
}

function* composeDocuments(
  text: string,
  fileName: string,
  { lastKeyWins = false, isManifest = false }: YamlOptions,
): Generator<void, YamlDocument[]> {
  const lines = new LineCounter();
  const problems: ConfigurationProblem[] = [];
  const composed: { document: Document.Parsed; targets: AliasTargets }[] = [];
  for (const document of compose(text, fileName, lines, isManifest)) {
    const targets: AliasTargets = new Map();
    // A syntax error garbles the rest, whose messages would only hide the first.
    if (problems.length > 0) break;
    problems.push(...problemsOf(document, { targets, lastKeyWins }, fileName, { text, lines }));
    composed.push({ document, targets });
    yield;
  }
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  const documents: YamlDocument[] = [];
  for (const { document, targets } of composed) {
    const value = toValue(document, fileName, lines);
    const places = new FieldPlaces(document, targets);
    const placeOf = (path: FieldPath): FilePlace => {
      const { line, col } = lines.linePos(places.offsetOf(path));
      return { line, column: col };
    };
    const lineOf = (path: FieldPath) => placeOf(path).line;
    if (value !== null && value !== undefined) documents.push({ value, placeOf, lineOf });
    yield;
  }
  return documents;
}

/** Yields each document as soon as its last token is parsed. */
function* compose(
  text: string,
  fileName: string,
  lines: LineCounter,
  isManifest: boolean,
): Generator<Document.Parsed> {
  const tokens = new Parser(lines.addNewLine).parse(text);
  // The composer's check is quadratic; `problemsOf` finds equal keys in linear time.
  const composer = new Composer({
    merge: true,
    uniqueKeys: false,
    ...(isManifest && { schema: "failsafe", customTags: [...KUBERNETES_TAGS] }),
  });
  let isBroken = false;
  for (const token of checkedForDepth(tokens, fileName, lines)) {
    yield* composer.next(token) as Generator<Document.Parsed>;
    // The first error is reported; those behind it, one for each bracket, would take 30 us each.
    isBroken = token.type === "error";
    if (isBroken) break;
  }
  yield* composer.end(isBroken, text.length) as Generator<Document.Parsed>;
}

/**
 * The composer recurses: 100,000 brackets would crash V8 past any catch. So the depth of the tokens
 * is first measured without recursion.
 */
function* checkedForDepth(
  tokens: Iterable<CST.Token>,
  fileName: string,
  lines: LineCounter,
): Generator<CST.Token> {
  for (const token of tokens) {
    const pending: { token: CST.Token; depth: number }[] = [{ token, depth: 0 }];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (next.depth > MAX_YAML_DEPTH) {
        const { line, col } = lines.linePos(next.token.offset ?? 0);
        const message = `nested more than ${MAX_YAML_DEPTH} levels deep`;
        throw new ConfigurationError([{ source: fileName, line, column: col, path: "", message }]);
      }
      for (const child of childrenOf(next.token)) {
        pending.push({ token: child, depth: next.depth + 1 });
      }
    }
    yield token;
  }
}

/** Adds the aliases' nodes to `found`. */
function problemsOf(
  document: Document.Parsed,
  found: { readonly targets: AliasTargets; readonly lastKeyWins: boolean },
  fileName: string,
  { text, lines }: { readonly text: string; readonly lines: LineCounter },
): ConfigurationProblem[] {
  const at = (offset: number, message: string): ConfigurationProblem => {
    const { line, col } = lines.linePos(offset);
    return { source: fileName, line, column: col, path: "", message };
  };
  const [broken] = [...document.errors].sort((one, other) => one.pos[0] - other.pos[0]);
  if (broken !== undefined) {
    const [what = ""] = broken.message.split("\n");
    const { line } = lines.linePos(broken.pos[0]);
    const quoted = quotedLine(text, lines.lineStarts[line - 1] ?? 0);
    return [at(broken.pos[0], `${what.replace(/:$/, "").slice(0, MAX_QUOTED_CHARACTERS)}: ${quoted}`)];
  }
  // A warning is an unresolved tag, whose value would silently differ from the author's intention.
  const problems = document.warnings.map((error) => at(error.pos[0], error.message));
  const anchors = new Map<string, Node>();
  const maps: YAMLMap[] = [];
  visit(document, {
    Value(_, node) {
      if (node.anchor !== undefined) {
        anchors.set(node.anchor, node as Node);
      }
      if (isMap(node)) maps.push(node);
      const values = new Set<unknown>();
      for (const { key } of isMap(node) ? node.items : []) {
        if (!isScalar(key)) continue;
        if (values.has(key.value) && !found.lastKeyWins)
          problems.push(at(key.range?.[0] ?? 0, "Map keys must be unique"));
        values.add(key.value);
      }
    },
    Alias(_, alias, ancestors) {
      const target = anchors.get(alias.source);
      if (target !== undefined) found.targets.set(alias, target);
      if (target === undefined) {
        problems.push(at(alias.range?.[0] ?? 0, `no anchor &${alias.source} stands before this alias`));
      } else if (ancestors.some((ancestor) => ancestor === target)) {
        problems.push(at(alias.range?.[0] ?? 0, `the alias *${alias.source} stands inside its own anchor`));
      }
    },
    Pair(_, pair) {
      if (isCollection(pair.key)) {
        problems.push(at(pair.key.range?.[0] ?? 0, "a map key must be a plain value"));
      }
    },
  });
  // Counts merges only once every alias refers to an earlier node.
  return problems.length > 0
    ? problems
    : tooMuchOf(found.targets, maps).map((text) => at(document.range[0], text));
}

function tooMuchOf(targets: AliasTargets, maps: readonly YAMLMap[]): string[] {
  if (targets.size > MAX_YAML_ALIASES) return [`more than ${MAX_YAML_ALIASES} aliases`];
  const merged = new MergedEntries(targets);
  const entries = maps.reduce((sum, map) => sum + merged.of(map), 0);
  return entries > MAX_MERGED_ENTRIES ? [`its merge keys copy more than ${MAX_MERGED_ENTRIES} entries`] : [];
}

function toValue(document: Document.Parsed, fileName: string, lines: LineCounter): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASED_NODES });
  } catch (reason) {
    const { line, col } = lines.linePos(document.range[0]);
    const message = reason instanceof Error ? reason.message : String(reason);
    throw new ConfigurationError([{ source: fileName, line, column: col, path: "", message }]);
  }
}
