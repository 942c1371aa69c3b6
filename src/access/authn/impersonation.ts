import { forbidden, StatusError } from "../../api/status.ts";
import type { Attributes, Authorizer } from "../authz/authorizer.ts";
import { DecisionCache } from "../authz/webhook/decision-cache.ts";
import type { UserInfo } from "../user-info.ts";
import { IMPERSONATION_MODES, type ImpersonationMode, requireMode } from "./impersonation-modes.ts";
import { fixedGroupsOf, serviceAccountOf, withSystemGroup } from "./system-users.ts";
import { wantedUserOf } from "./wanted-user.ts";

/** Callers whose mode is remembered; as many as kube-apiserver remembers. */
const MAX_REMEMBERED_CALLERS = 10_000;

/** A user that the caller may be for this request. */
export interface Impersonated {
  readonly user: UserInfo;
  /** The verb of the constrained mode that allowed it; undefined by legacy impersonation. */
  readonly constraint: string | undefined;
}

/** The user of a request, with its requester. */
export interface RequestUser extends UserInfo {
  /** The name of the user whose credentials came; absent where it does not impersonate. */
  readonly requestedBy?: string;
}

/** Decides on Impersonate-* headers as KEP-5284: any mode that allows every part of the user will do. */
export class Impersonation {
  readonly #authorizer: Pick<Authorizer, "authorize">;
  readonly #modes: readonly ImpersonationMode[];
  /** What allowed a caller's last impersonation is tried first, so that legacy callers cost no further questions. */
  readonly #lastModes = new DecisionCache<ImpersonationMode>(MAX_REMEMBERED_CALLERS, () => 0);

  /** `hasConstrainedModes`: the gate ConstrainedImpersonation. */
  constructor(authorizer: Pick<Authorizer, "authorize">, hasConstrainedModes: boolean) {
    this.#authorizer = authorizer;
    this.#modes = IMPERSONATION_MODES.filter(({ isConstrained }) => hasConstrainedModes || !isConstrained);
  }

  /**
   * Undefined without impersonation headers. `attributesOf`: of this request, for a user. Throws StatusError 403
   * with the first refusal, 400 or 431 for wrong headers.
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

/** An authorizer that fails allows nothing here either; kube-apiserver answers 403 for it too. */
function refusalOf(error: unknown, { name }: UserInfo): StatusError {
  if (error instanceof StatusError) return error;
  return forbidden("users", name, "the permission could not be checked");
}

/** Groups named count as named. A service account without any has its own; so has a node, in a constrained mode. */
function impersonated(wanted: UserInfo, { verb, isConstrained }: ImpersonationMode): Impersonated {
  const hasOwn = wanted.groups.length === 0 && (isConstrained || serviceAccountOf(wanted.name) !== undefined);
  const groups = hasOwn ? fixedGroupsOf(wanted.name) : wanted.groups;
  const user = { ...wanted, groups: withSystemGroup({ name: wanted.name, groups }) };
  return { user, constraint: isConstrained ? verb : undefined };
}
