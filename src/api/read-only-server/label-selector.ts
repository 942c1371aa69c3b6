import { badRequest } from "@sluice/client/internal/api/status";
import type { ApiObject } from "../api-object.ts";
import { aggregateText, invalidValue } from "../field-errors.ts";
import { labelValueProblems, qualifiedNameProblems } from "../validation/name-rules.ts";
import type { Resource } from "./resources.ts";

type Labels = Readonly<Record<string, string>>;
type LabelMatcher = (labels: Labels) => boolean;

/**
 * Follows apimachinery's lexer: a no-break space belongs to a word, which is then refused. A NUL
 * ends a token, and at a token's start it ends the selector.
 */
const TOKEN = /[ \t\r\n]*(?<token>==|!=|[=!,()<>]|[^\0 \t\r\n=!,()<>]+)\0?/y;
const SYMBOL = /^[=!,()<>]/;
const END = "";
const OPERATORS = ["in", "notin", "=", "==", "!=", ">", "<"];

/**
 * Parses `app=web,tier in (a, b),!old,level>3` as apimachinery's labels.Parse. An absent key
 * satisfies `!=` and `notin`. Throws its StatusError 400.
 */
export function parseLabelSelector(selector: string): LabelMatcher {
  const tokens = new Tokens(selector);
  const requirements: LabelMatcher[] = [];
  while (tokens.peek() !== END) {
    if (!isWord(tokens.peek()) && tokens.peek() !== "!")
      throw badRequest(`found '${tokens.peek()}', expected: !, identifier, or 'end of string'`);
    requirements.push(parseRequirement(tokens));
    const separator = tokens.next();
    if (separator === END) break;
    if (separator !== ",") throw badRequest(`found '${separator}', expected: ',' or 'end of string'`);
    if (!isWord(tokens.peek()) && tokens.peek() !== "!")
      throw badRequest(`found '${tokens.peek()}', expected: identifier after ','`);
  }
  return (labels) => requirements.every((isMet) => isMet(labels));
}

function parseRequirement(tokens: Tokens): LabelMatcher {
  const isAbsent = tokens.skip("!");
  const key = parseKey(tokens);
  if (isAbsent) return (labels) => !has(labels, key);
  if (tokens.peek() === "," || tokens.peek() === END) return (labels) => has(labels, key);
  const operator = tokens.next();
  if (!OPERATORS.includes(operator))
    throw unparsable(`found '${operator}', expected: in, notin, =, ==, !=, gt, lt`);
  const isSet = operator === "in" || operator === "notin";
  const values = [...(isSet ? parseValues(tokens) : [parseValue(tokens)])].toSorted();
  const isOrder = operator === "<" || operator === ">";
  checkValues(key, values, isOrder);
  if (isOrder) {
    const bound = int64Of(values[0] ?? "") ?? 0n;
    return (labels) => has(labels, key) && isBeyond(labels[key] ?? "", operator, bound);
  }
  const isNegated = operator === "!=" || operator === "notin";
  return (labels) => (has(labels, key) && values.includes(labels[key] ?? "")) !== isNegated;
}

function parseKey(tokens: Tokens): string {
  const key = tokens.next();
  if (!isWord(key)) throw unparsable(`found '${key}', expected: identifier`);
  const problems = qualifiedNameProblems(key);
  if (problems.length > 0)
    throw unparsable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${problems.join("; ")}`);
  return key;
}

/** `app=` has an empty value. */
function parseValue(tokens: Tokens): string {
  if (tokens.peek() === "," || tokens.peek() === END) return "";
  const value = tokens.next();
  if (!isWord(value)) throw unparsable(`found '${value}', expected: identifier`);
  return value;
}

/** `(a,b)`; a missing value before, between or after commas is empty. */
function parseValues(tokens: Tokens): Set<string> {
  const open = tokens.next();
  if (open !== "(") throw unparsable(`found '${open}' expected: '('`);
  const first = tokens.peek();
  if (first !== ")" && first !== "," && !isWord(first))
    throw unparsable(`found '${first}', expected: ',', ')' or identifier`);
  const values = new Set<string>();
  if (tokens.skip(")")) return values.add("");
  while (!tokens.skip(")")) {
    const token = tokens.next();
    if (isWord(token)) {
      values.add(token);
      if (tokens.peek() !== "," && tokens.peek() !== ")")
        throw unparsable(`found '${tokens.peek()}', expected: ',' or ')'`);
    } else if (token === ",") {
      if (values.size === 0 || tokens.peek() === ")" || tokens.peek() === ",") values.add("");
    } else {
      throw unparsable(`found '${token}', expected: ',', or identifier`);
    }
  }
  return values;
}

function checkValues(key: string, values: readonly string[], areIntegers: boolean): void {
  const noInteger = "for 'Gt', 'Lt' operators, the value must be an integer";
  const errors = [
    ...values.flatMap((value, index) =>
      areIntegers && int64Of(value) === undefined ? [invalidValue(["values", index], value, noInteger)] : [],
    ),
    ...values.flatMap((value, index) => {
      const problems = labelValueProblems(value);
      return problems.length === 0
        ? []
        : [invalidValue([`values[${index}][${key}]`], value, problems.join("; "))];
    }),
  ];
  if (errors.length > 0) throw unparsable(aggregateText(errors));
}

function isBeyond(value: string, operator: "<" | ">", bound: bigint): boolean {
  const number = int64Of(value);
  if (number === undefined) return false;
  return operator === ">" ? number > bound : number < bound;
}

/** strconv.ParseInt with 64 bits; undefined if it fails. */
export function int64Of(text: string): bigint | undefined {
  // More digits, apart from leading zeros, do not fit; BigInt's time grows with their square.
  const digits = /^([+-]?)0*(\d{0,19})$/.exec(text);
  if (digits === null || !/\d$/.test(text)) return undefined;
  const number = BigInt(digits[2] || "0") * (digits[1] === "-" ? -1n : 1n);
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

/** A query's boolean: absent, "0" and "false" are false; all else, even `?watch`, is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

function has(labels: Labels, key: string): boolean {
  return Object.hasOwn(labels, key);
}

function isWord(token: string): boolean {
  return token !== END && !SYMBOL.test(token);
}

function unparsable(problem: string): Error {
  return badRequest(`unable to parse requirement: ${problem}`);
}

/** The selector's words and symbols in order, then endless empty strings. */
class Tokens {
  readonly #tokens: readonly string[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = Array.from(text.matchAll(new RegExp(TOKEN, "gy")), ({ groups }) => groups?.token ?? "");
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
}

export type ObjectMatcher = (object: ApiObject) => boolean;

interface FieldTerm {
  readonly field: string;
  readonly operator: "=" | "==" | "!=";
  readonly value: string;
}

/**
 * Parses `spec.nodeName=worker,status.phase!=Failed`. Throws StatusError 400 for a malformed term or an
 * unsupported field.
 */
export function parseFieldSelector(selector: string, resource: Resource): ObjectMatcher {
  const requirements = fieldTerms(selector).map(({ field, operator, value }) => {
    const fieldOf = selectableValue(field, resource);
    return (object: ApiObject) => (String(fieldOf(object) ?? "") === value) === (operator !== "!=");
  });
  return (object) => requirements.every((isMet) => isMet(object));
}

/**
 * A selector's terms, sorted by bytes as in apimachinery's fields.ParseSelector. In a value, a
 * backslash escapes a comma, an equals sign or a backslash. Throws its StatusError 400.
 */
export function fieldTerms(selector: string): readonly FieldTerm[] {
  const terms = selector.match(/(?:\\.?|[^\\,])+/gs) ?? [];
  const parsed = terms
    .toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    .map((term) => {
      const { field, operator, value } =
        /^(?<field>.*?)(?<operator>!=|==?)(?<value>.*)$/s.exec(term)?.groups ?? {};
      if (field === undefined || value === undefined)
        throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
      return { field, operator: operator as FieldTerm["operator"], value: unescaped(value) };
    });
  // apimachinery ignores a term that has only an operator.
  return parsed.filter(({ field, value }) => field !== "" || value !== "");
}

function unescaped(value: string): string {
  return value.replace(/\\(.?)|[,=]/gsu, (sequence, escaped: string | undefined) => {
    if (escaped === undefined)
      throw badRequest(`invalid field selector: unescaped character in value: ${sequence.charCodeAt(0)}`);
    if (escaped !== "" && "\\,=".includes(escaped)) return escaped;
    throw badRequest(`invalid field selector: invalid escape sequence: ${sequence}`);
  });
}

function selectableValue(field: string, resource: Resource): (object: ApiObject) => unknown {
  if (field === "metadata.name") return ({ metadata }) => metadata.name;
  if (field === "metadata.namespace") return ({ metadata }) => metadata.namespace;
  const known = Object.hasOwn(resource.selectableFields, field)
    ? resource.selectableFields[field]
    : undefined;
  if (known === undefined) throw badRequest(`field label not supported: ${field}`);
  return known;
}
