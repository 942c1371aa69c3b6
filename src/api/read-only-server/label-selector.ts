import { badRequest } from "../status.ts";
import { labelValueProblems, qualifiedNameProblems } from "../validation/name-rules.ts";

type Labels = Readonly<Record<string, string>>;
export type LabelMatcher = (labels: Labels) => boolean;

/** White space is what Go's lexer takes for it: no-break spaces belong to words, where they are refused. */
const TOKEN = /[ \t\r\n]*(?:(?<symbol>==|!=|[=!,()<>])|(?<word>[^ \t\r\n=!,()<>]+))/y;
const END = "";

/**
 * Parses `app=web,tier in (a, b),!old,level>3` as Kubernetes does. A key that is absent satisfies `!=` and `notin`.
 * Throws StatusError 400 `unable to parse requirement: ...`.
 */
export function parseLabelSelector(selector: string): LabelMatcher {
  const tokens = new Tokens(selector);
  const requirements: LabelMatcher[] = [];
  if (tokens.peek() !== END) {
    do requirements.push(parseRequirement(tokens));
    while (tokens.skip(","));
    tokens.expect(END);
  }
  return (labels) => requirements.every((isMet) => isMet(labels));
}

function parseRequirement(tokens: Tokens): LabelMatcher {
  if (tokens.skip("!")) {
    const key = parseKey(tokens);
    return (labels) => !has(labels, key);
  }
  const key = parseKey(tokens);
  const operator = tokens.peek();
  switch (operator) {
    case ",":
    case END:
      return (labels) => has(labels, key);
    case "=":
    case "==":
    case "!=": {
      tokens.next();
      const value = parseValue(tokens);
      return (labels) => (has(labels, key) && labels[key] === value) === (operator !== "!=");
    }
    case "in":
    case "notin": {
      tokens.next();
      const values = parseValues(tokens);
      return (labels) => (has(labels, key) && values.has(labels[key] ?? "")) === (operator === "in");
    }
    case "<":
    case ">": {
      tokens.next();
      const bound = parseInteger(tokens.next());
      return (labels) => has(labels, key) && isBeyond(labels[key] ?? "", operator, bound);
    }
    default:
      throw unparsable(`found '${operator}', expected: in, notin, =, ==, !=, gt, lt`);
  }
}

function parseKey(tokens: Tokens): string {
  const key = tokens.next();
  if (/^[=!,()<>]*$/.test(key))
    throw unparsable(`found '${key}', expected: !, identifier, or 'end of string'`);
  const [problem] = qualifiedNameProblems(key);
  if (problem) throw unparsable(`key: Invalid value: ${JSON.stringify(key)}: ${problem}`);
  return key;
}

/** `app=` asks for an empty value. */
function parseValue(tokens: Tokens): string {
  if (tokens.peek() === "," || tokens.peek() === END || tokens.peek() === ")") return "";
  const value = tokens.next();
  if (/^[=!(<>]+$/.test(value)) throw unparsable(`found '${value}', expected: identifier`);
  const [problem] = labelValueProblems(value);
  if (problem) throw unparsable(`values[0]: Invalid value: ${JSON.stringify(value)}: ${problem}`);
  return value;
}

function parseValues(tokens: Tokens): Set<string> {
  tokens.expect("(");
  const values = new Set<string>();
  do values.add(parseValue(tokens));
  while (tokens.skip(","));
  tokens.expect(")");
  return values;
}

function parseInteger(text: string): bigint {
  const number = int64Of(text);
  if (number === undefined) {
    throw unparsable(
      `values[0]: Invalid value: ${JSON.stringify(text)}: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  }
  return number;
}

function isBeyond(value: string, operator: "<" | ">", bound: bigint): boolean {
  const number = int64Of(value);
  if (number === undefined) return false;
  return operator === ">" ? number > bound : number < bound;
}

/** As strconv.ParseInt: what does not fit is none. */
function int64Of(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const number = BigInt(text.replace("+", ""));
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

function has(labels: Labels, key: string): boolean {
  return Object.hasOwn(labels, key);
}

function unparsable(problem: string): Error {
  return badRequest(`unable to parse requirement: ${problem}`);
}

/** The selector's words and symbols in order, then empty strings for ever. */
class Tokens {
  readonly #tokens: readonly string[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = Array.from(
      text.matchAll(new RegExp(TOKEN, "gy")),
      ({ groups }) => groups?.symbol ?? groups?.word ?? "",
    );
  }

  peek(): string {
    return this.#tokens[this.#position] ?? END;
  }

  next(): string {
    const token = this.peek();
    this.#position++;
    return token;
  }

  skip(wanted: string): boolean {
    if (this.peek() !== wanted) return false;
    this.#position++;
    return true;
  }

  expect(wanted: string): void {
    const found = this.next();
    if (found !== wanted)
      throw unparsable(`found '${found}', expected: '${wanted === END ? "end of string" : wanted}'`);
  }
}
