import type { Attributes, Authorizer, Decision } from "../access/authz/authorizer.ts";
import type { UserInfo } from "../access/user-info.ts";

/** Throws what a refused request gets. It asks this authorizer alone. */
type RequireSession<U extends UserInfo> = (
  user: U,
  authorizer: Pick<Authorizer, "authorize">,
) => Promise<void>;

/** `undecided`: no authorizer could decide now. */
export type Standing =
  | { readonly result: "allowed" | "undecided" }
  | { readonly result: "refused"; readonly message: string };

/** Whether a running session's user may still have it: the user as last authenticated, and the start's checks. */
export class SessionStanding<U extends UserInfo = UserInfo> {
  readonly #authorizer: Pick<Authorizer, "authorize">;
  readonly #require: RequireSession<U>;
  readonly #expires: boolean;
  #user: U;

  /** `expires`: whether it ends with the user's credentials. */
  constructor(
    user: U,
    authorizer: Pick<Authorizer, "authorize">,
    require: RequireSession<U>,
    { expires = true }: { readonly expires?: boolean } = {},
  ) {
    this.#expires = expires;
    this.#user = user;
    this.#authorizer = authorizer;
    this.#require = require;
  }

  /** In milliseconds since 1970; undefined: never, or it is unknown. */
  get expiresAtMs(): number | undefined {
    return this.#expires ? this.#user.expiresAtMs : undefined;
  }

  /** The user came with these credentials, authenticated and authorized. */
  renew(user: U): void {
    this.#user = user;
  }

  /** Repeats the checks. Never rejects. */
  async check(): Promise<Standing> {
    const asked = new AskedAuthorizer(this.#authorizer);
    try {
      await this.#require(this.#user, asked);
      return { result: "allowed" };
    } catch (error) {
      // An exception that no decision caused is not the user's.
      if (asked.hasFailed || !asked.hasRefused) return { result: "undecided" };
      return { result: "refused", message: error instanceof Error ? error.message : String(error) };
    }
  }
}

/** Remembers whether it could decide. */
class AskedAuthorizer implements Pick<Authorizer, "authorize"> {
  readonly #authorizer: Pick<Authorizer, "authorize">;
  hasRefused = false;
  hasFailed = false;

  constructor(authorizer: Pick<Authorizer, "authorize">) {
    this.#authorizer = authorizer;
  }

  async authorize(attributes: Attributes): Promise<Decision> {
    try {
      const answer = await this.#authorizer.authorize(attributes);
      if (answer.decision === "no-opinion" && answer.error !== undefined) this.hasFailed = true;
      else if (answer.decision !== "allow") this.hasRefused = true;
      return answer;
    } catch (error) {
      this.hasFailed = true;
      throw error;
    }
  }
}
