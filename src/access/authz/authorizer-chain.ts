import { StatusError } from "@sluice/client/internal/api/status";
import type { UserInfo } from "../user-info.ts";
import type { Attributes, Authorizer, Decision, UserRules } from "./authorizer.ts";

/**
 * Kubernetes' union: the first allow or deny decides. Otherwise no opinion, with every reason. An
 * authorizer that throws has no opinion; its StatusError is thrown if no other decides.
 */
export class AuthorizerChain implements Authorizer {
  readonly #authorizers: readonly Authorizer[];

  constructor(authorizers: readonly Authorizer[]) {
    this.#authorizers = authorizers;
  }

  async authorize(attributes: Attributes): Promise<Decision> {
    const reasons: string[] = [];
    const errors: string[] = [];
    let unable: StatusError | undefined;
    for (const authorizer of this.#authorizers) {
      const decision = await decisionOf(authorizer, attributes);
      if (decision instanceof StatusError) {
        unable ??= decision;
        continue;
      }
      if (decision.decision !== "no-opinion") return decision;
      if (decision.reason !== "") reasons.push(decision.reason);
      if (decision.error !== undefined) errors.push(decision.error);
    }
    if (unable !== undefined) throw unable;
    const error = errors.length === 0 ? {} : { error: aggregate(errors) };
    return { decision: "no-opinion", reason: reasons.join("\n"), ...error };
  }

  async rulesFor(user: UserInfo, namespace: string): Promise<UserRules> {
    const all = await Promise.all(
      this.#authorizers.map((authorizer) => authorizer.rulesFor?.(user, namespace)),
    );
    const found = all.filter((rules) => rules !== undefined);
    const errors = found.flatMap(({ evaluationError }) => evaluationError ?? []);
    return {
      resourceRules: found.flatMap(({ resourceRules }) => resourceRules),
      nonResourceRules: found.flatMap(({ nonResourceRules }) => nonResourceRules),
      incomplete: found.some(({ incomplete }) => incomplete),
      ...(errors.length > 0 && { evaluationError: aggregate(errors) }),
    };
  }
}

/** Formats errors as Kubernetes does: one alone, several as `[a, b]`, duplicates once. */
export function aggregate(errors: readonly string[]): string {
  const texts = [...new Set(errors)];
  return texts.length === 1 ? texts.join("") : `[${texts.join(", ")}]`;
}

async function decisionOf(authorizer: Authorizer, attributes: Attributes): Promise<Decision | StatusError> {
  try {
    return await authorizer.authorize(attributes);
  } catch (error) {
    if (error instanceof StatusError) return error;
    // The authorizer logged the cause; the user sees only that no decision was made.
    return { decision: "no-opinion", reason: "", error: "an authorizer failed" };
  }
}
