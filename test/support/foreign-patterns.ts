import { parseAst } from "rolldown/parseAst";

export interface FoundPattern {
  readonly line: number;
  readonly pattern: RegExp;
}

/** A node of the syntax tree, of any type. */
type Node = Readonly<Record<string, unknown>> & { readonly type: string; readonly start: number };

/**
 * The regular expressions of a source: literals, and those built from texts in the same file.
 * Throws for one built from anything else, because no test could try it.
 */
export function patternsIn(source: string, file: string): FoundPattern[] {
  const found: FoundPattern[] = [];
  const texts = new Map<string, string>();
  const add = ({ start }: Node, pattern: RegExp): void => {
    found.push({ line: source.slice(0, start).split("\n").length, pattern });
  };
  visit(parseAst(source, { lang: "ts" }), (node) => {
    if (node.type === "VariableDeclarator" && isNode(node.init) && isNode(node.id)) {
      const text = textOf(node.init, texts);
      if (text !== undefined) texts.set(String(node.id.name), text);
    }
    if (node.type === "Literal" && isRecord(node.regex)) {
      add(node, new RegExp(String(node.regex.pattern), String(node.regex.flags)));
    }
    const isBuilt = node.type === "NewExpression" || node.type === "CallExpression";
    if (isBuilt && isNode(node.callee) && node.callee.name === "RegExp") {
      const [argument, flags] = node.arguments as Node[];
      const text = argument && textOf(argument, texts);
      if (text === undefined) throw new Error(`${file}: a pattern that is built of unknown text`);
      add(node, new RegExp(text, String(flags?.value ?? "")));
    }
  });
  return found;
}

function textOf(node: Node, texts: ReadonlyMap<string, string>): string | undefined {
  if (node.type === "Literal" && isRecord(node.regex)) return String(node.regex.pattern);
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "Identifier") return texts.get(String(node.name));
  if (node.type !== "TemplateLiteral") return undefined;
  const parts = (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked);
  return (node.expressions as Node[]).reduce((text, expression, index) => {
    // A name that is unknown here is replaced by a word.
    return text + (textOf(expression, texts) ?? "word") + (parts[index + 1] ?? "");
  }, parts[0] ?? "");
}

function visit(value: unknown, onNode: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) visit(item, onNode);
  else if (isRecord(value)) {
    if (isNode(value)) onNode(value);
    for (const child of Object.values(value)) visit(child, onNode);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !(value instanceof RegExp);
}

function isNode(value: unknown): value is Node {
  return isRecord(value) && typeof value.type === "string";
}

const SIMPLEST = new Map([
  ["d", "0"],
  ["w", "a"],
  ["s", " "],
  ["S", "a"],
  ["W", "-"],
  ["D", "a"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

/**
 * The parts of a text that the pattern nearly matches: every group and every choice once, in order.
 * Not a full parser, but good enough to aim with.
 */
export function sampleParts(pattern: string): string[] {
  const parts: string[] = [];
  const tokens =
    /\(\?<?[=!][^)]*\)|\(\?(?:<\w+>|:)|\[\^?(\\.|[^\]\\])(?:\\.|[^\]\\])*\]|\\(?:x([0-9a-f]{2})|(.))|\{[\d,]+\}|[()|^$*+?]|\.|([^\\])/gi;
  for (const [token, member, hex, escaped, plain] of pattern.matchAll(tokens)) {
    if (token.startsWith("[^")) parts.push(["a", "0", " ", "-"].find((text) => !token.includes(text)) ?? "é");
    else if (member !== undefined) parts.push(simplest(member));
    else if (hex !== undefined) parts.push(String.fromCharCode(Number.parseInt(hex, 16)));
    else if (escaped !== undefined && escaped !== "b" && escaped !== "B")
      parts.push(simplest(`\\${escaped}`));
    else if (token === ".") parts.push("a");
    else if (plain !== undefined && !/^[()|^$*+?{]/.test(token)) parts.push(plain);
  }
  return parts;
}

function simplest(text: string): string {
  return text.startsWith("\\") ? (SIMPLEST.get(text.slice(1)) ?? text.slice(1)) : text;
}
