import { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { Attributes, Authorizer } from "../authz/authorizer.ts";
import { DecisionCache } from "../authz/webhook/decision-cache.ts";
import type { UserInfo } from "../user-info.ts";
import { IMPERSONATION_MODES, type ImpersonationMode, requireMode } from "./impersonation-modes.ts";
import { fixedGroupsOf, serviceAccountOf, withSystemGroup } from "./system-users.ts";
import { wantedUserOf } from "./wanted-user.ts";

/**
 * Callers whose mode of impersonation is remembered, as in kube-apiserver. Past it the least
 * recently used is forgotten.
 */
const MAX_REMEMBERED_CALLERS = 10_000;

/** A user that the caller may impersonate for this request. */
export interface Impersonated {
  readonly user: UserInfo;
  /** The constrained mode's verb; undefined for legacy impersonation. */
  readonly constraint: string | undefined;
}

/** A request's user, with its requester. */
export interface RequestUser extends UserInfo {
  /** The impersonating user's name; absent without impersonation. */
  readonly requestedBy?: string;
}

/** Authorizes Impersonate-* headers as in KEP-5284: one mode must allow every part of the user. */
export class Impersonation {
  readonly #authorizer: Pick<Authorizer, "authorize">;
  readonly #modes: readonly ImpersonationMode[];
  /**
   * Tries the mode of the caller's last impersonation first, so that legacy callers need no
   * additional checks.
   */
  readonly #lastModes = new DecisionCache<ImpersonationMode>(MAX_REMEMBERED_CALLERS, () => 0);

  /** `hasConstrainedModes`: the gate ConstrainedImpersonation. */
  constructor(authorizer: Pick<Authorizer, "authorize">, hasConstrainedModes: boolean) {
    this.#authorizer = authorizer;
    this.#modes = IMPERSONATION_MODES.filter(({ isConstrained }) => hasConstrainedModes || !isConstrained);
  }

  /**
   * Undefined without impersonation headers. `attributesOf` gives this request's attributes for a
   * user. Throws StatusError 403 with the first refusal, 400 or 431 for wrong headers.
   */
  async decide(
    caller: UserInfo,
    headers: readonly (readonly [string, string])[],
    attributesOf: (user: UserInfo) => Attributes,
  ): Promise<Impersonated | undefined> {
    const wanted = wantedUserOf(headers);
    if (wanted === undefined) return undefined;
    const request = attributesOf(caller);
    const last = this.#lastModes.get(caller.name);
    const others = this.#modes.filter((mode) => mode !== last);
    let refusal: StatusError | undefined;
    for (const mode of last === undefined ? others : [last, ...others]) {
      if (!mode.appliesTo(wanted, caller)) continue;
      try {
        await requireMode(mode, this.#authorizer, wanted, request);
        this.#lastModes.set(caller.name, mode, Number.POSITIVE_INFINITY);
        return impersonated(wanted, mode);
      } catch (error) {
        refusal ??= refusalOf(error, wanted);
      }
    }
    throw refusal ?? refusalOf(undefined, wanted);
  }
}

/** A failing authorizer allows nothing; kube-apiserver answers 403, too. */
function refusalOf(error: unknown, { name }: UserInfo): StatusError {
  if (error instanceof StatusError) return error;
  return WIRE_ERRORS["impersonation-unchecked"].streaming({ name });
}

/**
 * Given groups count as given. Without any, a service account gets its own groups; in a constrained
 * mode a node does, too.
 */
function impersonated(wanted: UserInfo, { verb, isConstrained }: ImpersonationMode): Impersonated {
  const hasOwn = wanted.groups.length === 0 && (isConstrained || serviceAccountOf(wanted.name) !== undefined);
  const groups = hasOwn ? fixedGroupsOf(wanted.name) : wanted.groups;
  const user = { ...wanted, groups: withSystemGroup({ name: wanted.name, groups }) };
  return { user, constraint: isConstrained ? verb : undefined };
}
