import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import type { UserInfo } from "../user-info.ts";
import {
  type Attempt,
  type Authenticator,
  type CredentialsRequest,
  isChangedText,
  NO_CREDENTIAL,
  type TokenAuthenticator,
  withAuthenticatedGroup,
} from "./authenticator.ts";
import { bearerTokenOf, subprotocolTokenOf, TokenDigests } from "./bearer-tokens.ts";

interface CsvRecord {
  readonly fields: readonly string[];
  /** The record's first line, from 1. */
  readonly line: number;
}

/** Malformed CSV. The message never quotes the text, which may be secret. */
export class CsvError extends Error {
  override readonly name = "CsvError";
  readonly line: number;

  constructor(line: number, problem: string) {
    super(`record on line ${line}: ${problem}`);
    this.line = line;
  }
}

/**
 * Parses CSV as Go's encoding/csv does for kube-apiserver's token file: any number of fields, `""`
 * and line breaks inside quotes, no empty lines. Throws CsvError for a stray or unclosed quote.
 */
export function parseCsv(source: string): CsvRecord[] {
  // A carriage return before a line break or at the end belongs to the line break.
  const text = source.replaceAll("\r\n", "\n").replace(/\r$/, "");
  const records: CsvRecord[] = [];
  let [position, line] = [0, 1];
  while (position < text.length) {
    const start = line;
    const blank = lineBreakLength(text, position);
    if (blank > 0) {
      position += blank;
      line++;
      continue;
    }
    const fields: string[] = [];
    let isRecordOpen = true;
    while (isRecordOpen) {
      const field = readField(text, position, start);
      line += countLines(text, position, field.end);
      fields.push(field.value);
      isRecordOpen = text[field.end] === ",";
      position = field.end + (isRecordOpen ? 1 : lineBreakLength(text, field.end));
    }
    line++;
    records.push({ fields, line: start });
  }
  return records;
}

const FIELD_END = /[,\n]/g;

function readField(text: string, start: number, line: number): { value: string; end: number } {
  if (text[start] !== '"') {
    FIELD_END.lastIndex = start;
    const end = FIELD_END.exec(text)?.index ?? text.length;
    const value = text.slice(start, end);
    if (value.includes('"')) throw new CsvError(line, 'bare " in non-quoted field');
    return { value, end };
  }
  let close = text.indexOf('"', start + 1);
  while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  if (close < 0) throw new CsvError(line, 'missing " at the end of a quoted field');
  const end = close + 1;
  if (end < text.length && text[end] !== "," && lineBreakLength(text, end) === 0) {
    throw new CsvError(line, 'extraneous or missing " in quoted field');
  }
  return { value: text.slice(start + 1, close).replaceAll('""', '"'), end };
}

function lineBreakLength(text: string, at: number): number {
  return text[at] === "\n" ? 1 : 0;
}

function countLines(text: string, start: number, end: number): number {
  return text.slice(start, end).split("\n").length - 1;
}

/** One line of a token file. */
interface TokenRecord {
  readonly token: string;
  readonly user: UserInfo;
}

/**
 * Users from a kube-apiserver `--token-auth-file`. Stores and compares only digests of the tokens.
 */
export class StaticTokens implements Authenticator, TokenAuthenticator {
  readonly #digests = new TokenDigests();
  readonly #userOfDigest = new Map<string, UserInfo>();

  constructor(records: readonly TokenRecord[]) {
    for (const { token, user } of records) this.#userOfDigest.set(this.#digests.of(token), user);
  }

  async authenticate(request: CredentialsRequest): Promise<UserInfo | undefined> {
    const user = this.#userOf(bearerTokenOf(request)) ?? this.#userOf(subprotocolTokenOf(request));
    return user && withAuthenticatedGroup(user);
  }

  async attemptToken(token: string): Promise<Attempt> {
    const user = this.#userOf(token);
    return user === undefined ? NO_CREDENTIAL : { type: "known", user };
  }

  #userOf(token: string | undefined): UserInfo | undefined {
    return token === undefined ? undefined : this.#userOfDigest.get(this.#digests.of(token));
  }
}

/**
 * Reads a token file: each line has `token,user,uid` and optionally `"group1,group2"`. Throws
 * ConfigurationError with every bad line; unlike kube-apiserver also for empty or duplicate tokens.
 */
export function parseTokenFile(text: string, fileName: string): TokenRecord[] {
  const problems: ConfigurationProblem[] = [];
  const lineOfToken = new Map<string, number>();
  const records: TokenRecord[] = [];
  for (const record of readCsv(text, fileName)) {
    const { line } = record;
    const problem = problemOf(record, lineOfToken);
    if (problem !== undefined) {
      problems.push({ source: fileName, line, column: 0, path: "", message: problem });
      continue;
    }
    const [token = "", name = "", uid = "", groups = ""] = record.fields;
    lineOfToken.set(token, line);
    records.push({
      token,
      user: { name, uid, groups: groups === "" ? [] : groups.split(","), extra: {} },
    });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return records;
}

function problemOf({ fields }: CsvRecord, lineOfToken: ReadonlyMap<string, number>): string | undefined {
  if (fields.length < 3) {
    return `token file must have at least 3 columns (token, user name, user uid), found ${fields.length}`;
  }
  if (fields[0] === "") return "the token is empty";
  const [, name = "", uid = "", groups = ""] = fields;
  if ([name, uid, ...groups.split(",")].some(isChangedText))
    return "the user's name, uid or a group has white space at an end, or a control character";
  const earlier = lineOfToken.get(fields[0] ?? "");
  return earlier === undefined ? undefined : `duplicate token, it stands on line ${earlier} already`;
}

function readCsv(text: string, fileName: string): CsvRecord[] {
  try {
    return parseCsv(text);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new ConfigurationError([
      { source: fileName, line: error.line, column: 0, path: "", message: error.message },
    ]);
  }
}
