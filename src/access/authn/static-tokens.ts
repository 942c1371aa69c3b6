import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import type { UserInfo } from "../user-info.ts";
import {
  type Attempt,
  type Authenticator,
  type CredentialsRequest,
  NO_CREDENTIAL,
  type TokenAuthenticator,
  withAuthenticatedGroup,
} from "./authenticator.ts";
import { bearerTokenOf, subprotocolTokenOf } from "./bearer.ts";
import { CsvError, type CsvRecord, parseCsv } from "./csv.ts";
import { isChangedText } from "./identity-text.ts";
import { TokenDigests } from "./token-digests.ts";

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
