import type { SessionClock, Ticking } from "@sluice/client/internal/net/session-clock";
import type { CommandStatus } from "@sluice/protocols/remotecommand";
import type { Attributes, Authorizer, Decision } from "../access/authz/authorizer.ts";
import type { UserInfo } from "../access/user-info.ts";
import type { SessionAuthorization } from "../config/sections/authorization.ts";
import type { RunningSession } from "./sessions.ts";

/** Running sessions that are authorized again at the same time. Past it they wait, the longest due first. */
const MAX_REAUTHORIZATIONS_AT_ONCE = 16;

/** A closed list: it is a metric label. */
type Result = "allowed" | "undecided" | "refused" | "expired";

interface ReauthorizerParts {
  readonly settings: Omit<SessionAuthorization, "portForward" | "currentScreen">;
  readonly clock: SessionClock;
  readonly onResult: (result: Result) => void;
  /** Milliseconds since 1970. */
  readonly dateMs?: () => number;
  /** From 0 to 1. */
  readonly random?: () => number;
}

/** What ends, as messages name it. */
type What = "session" | "join" | "view" | "watch" | "download" | "log";

interface Followed {
  readonly what: What;
  readonly session: Pick<RunningSession, "cut">;
  readonly standing: Pick<SessionStanding, "expiresAtMs" | "check">;
  nextMs: number;
  isDue: boolean;
}

/**
 * Authorizes running sessions again, and ends those whose users may no longer have them or whose
 * credentials have expired. An authorizer that cannot decide ends none.
 */
export class Reauthorizer implements Ticking {
  readonly #parts: ReauthorizerParts;
  readonly #dateMs: () => number;
  readonly #followed = new Set<Followed>();
  readonly #due = new Set<Followed>();
  #asked = 0;

  constructor(parts: ReauthorizerParts) {
    this.#parts = parts;
    this.#dateMs = parts.dateMs ?? Date.now;
  }

  /** Until the returned function is called. Sessions that begin together are checked at random times. */
  follow(session: Followed["session"], standing: Followed["standing"], what: What = "session"): () => void {
    const { settings, clock, random = Math.random } = this.#parts;
    const nextMs = clock.now() + random() * settings.reauthorizeIntervalMs;
    const followed = { what, session, standing, nextMs, isDue: false };
    if (this.#followed.size === 0) clock.addFollower(this);
    this.#followed.add(followed);
    return () => this.#forget(followed);
  }

  tick(nowMs: number): void {
    // At the end of the process all deadlines expire: `nowMs` is then infinite.
    if (!Number.isFinite(nowMs)) return;
    const { reauthorizeIntervalMs, credentialExpiry } = this.#parts.settings;
    const dateMs = this.#dateMs();
    for (const followed of this.#followed) {
      const { expiresAtMs = Number.POSITIVE_INFINITY } = followed.standing;
      if (credentialExpiry === "end" && dateMs >= expiresAtMs) {
        this.#end(followed, "expired", "its user's credentials have expired");
      } else if (reauthorizeIntervalMs > 0 && !followed.isDue && nowMs >= followed.nextMs) {
        followed.isDue = true;
        this.#due.add(followed);
      }
    }
    this.#askNext();
  }

  #askNext(): void {
    for (const followed of this.#due) {
      if (this.#asked >= MAX_REAUTHORIZATIONS_AT_ONCE) return;
      this.#due.delete(followed);
      this.#asked += 1;
      void this.#ask(followed).then(() => {
        this.#asked -= 1;
        this.#askNext();
      });
    }
  }

  async #ask(followed: Followed): Promise<void> {
    const { settings, clock, onResult } = this.#parts;
    const standing = await followed.standing.check();
    if (!this.#followed.has(followed)) return;
    // Keeps its place among the others, unless it waited for longer than an interval.
    followed.nextMs = Math.max(followed.nextMs, clock.now() - settings.reauthorizeIntervalMs);
    followed.nextMs += settings.reauthorizeIntervalMs;
    followed.isDue = false;
    if (standing.result === "refused") this.#end(followed, "refused", standing.message);
    else onResult(standing.result);
  }

  #end(followed: Followed, result: "refused" | "expired", problem: string): void {
    this.#forget(followed);
    this.#parts.onResult(result);
    const { what, session } = followed;
    const message = `the ${what} was ended: ${problem}`;
    session.cut("authorization-revoked", message, statusOfRevoked(what, message));
  }

  #forget(followed: Followed): void {
    this.#due.delete(followed);
    if (this.#followed.delete(followed) && this.#followed.size === 0) this.#parts.clock.delete(this);
  }
}

function statusOfRevoked(what: What, message: string): CommandStatus {
  const reason = what === "watch" ? "sluice.dev/WatchEnded" : "sluice.dev/SessionEnded";
  const causes = [{ reason, message: "authorization-revoked" }];
  return { metadata: {}, status: "Failure", reason: "Forbidden", code: 403, message, details: { causes } };
}

/** Throws the error that a refused request gets. Asks only this authorizer. */
type RequireSession<U extends UserInfo> = (
  user: U,
  authorizer: Pick<Authorizer, "authorize">,
) => Promise<void>;

/** `undecided`: no authorizer could decide now. */
type Standing =
  | { readonly result: "allowed" | "undecided" }
  | { readonly result: "refused"; readonly message: string };

/**
 * Checks whether a running session's user may keep it: the user as last authenticated, by the
 * checks at the start.
 */
export class SessionStanding<U extends UserInfo = UserInfo> {
  readonly #authorizer: Pick<Authorizer, "authorize">;
  readonly #require: RequireSession<U>;
  readonly #expires: boolean;
  #user: U;

  /** `expires`: the session ends with its user's credentials. */
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

  /**
   * When the user's credentials expire, in milliseconds since 1970; undefined: never, or it is
   * unknown.
   */
  get expiresAtMs(): number | undefined {
    return this.#expires ? this.#user.expiresAtMs : undefined;
  }

  /** Call when the user was authenticated with new credentials, and authorized. */
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
      // An exception that no decision caused does not count against the user.
      if (asked.hasFailed || !asked.hasRefused) return { result: "undecided" };
      return { result: "refused", message: error instanceof Error ? error.message : String(error) };
    }
  }
}

/** Remembers whether the authorizer refused, and whether it failed to decide. */
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
