import { goQuote } from "@sluice/client/internal/api/go-json";
import { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { Attributes, Authorizer } from "../authz/authorizer.ts";
import { DecisionCache } from "../authz/webhook/decision-cache.ts";
import type { UserInfo } from "../user-info.ts";
import { extraOf, headerText } from "./extra-headers.ts";
import {
  fixedGroupsOf,
  IMPERSONATION_MODES,
  type ImpersonationMode,
  requireMode,
  serviceAccountOf,
  withSystemGroup,
} from "./impersonation-modes.ts";

const EXTRA_PREFIX = "Impersonate-Extra-";
/**
 * Names and values to impersonate in one request; each costs one or two authorizer requests. Past
 * it: 431.
 */
const MAX_WANTED = 500;

/**
 * The user that Impersonate-* headers name; undefined if there are none. Throws StatusError 400 for
 * parts without a name, in the words of kube-apiserver 1.37, and 431 for too many.
 */
function wantedUserOf(headers: readonly (readonly [string, string])[]): UserInfo | undefined {
  const valuesOf = (wanted: string) =>
    headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => headerText(value));
  const name = valuesOf("impersonate-user")[0] ?? "";
  const groups = valuesOf("impersonate-group");
  const uid = valuesOf("impersonate-uid")[0] ?? "";
  const extra = extraOf(headers, [EXTRA_PREFIX]);
  const parts = groups.length + Object.values(extra).flat().length + (uid === "" ? 0 : 1);
  if (name === "") {
    if (parts === 0) return undefined;
    throw WIRE_ERRORS["impersonation-without-name"].streaming({ user: goUserInfo(groups, uid, extra) });
  }
  if (parts >= MAX_WANTED) throw WIRE_ERRORS["impersonation-too-long"].streaming();
  return { name, uid, groups, extra };
}

/** Formats a user without a name as Go's `%#v` does. */
function goUserInfo(
  groups: readonly string[],
  uid: string,
  extra: Readonly<Record<string, readonly string[]>>,
): string {
  const list = (values: readonly string[]): string =>
    values.length === 0 ? "[]string(nil)" : `[]string{${values.map(goQuote).join(", ")}}`;
  const keys = Object.keys(extra).sort();
  const entries = keys.map((key) => `${goQuote(key)}:${list(extra[key] ?? [])}`).join(", ");
  const map = keys.length === 0 ? "map[string][]string(nil)" : `map[string][]string{${entries}}`;
  return `&user.DefaultInfo{Name:"", UID:${goQuote(uid)}, Groups:${list(groups)}, Extra:${map}}`;
}

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
  /** The impersonating user. */
  readonly requester?: UserInfo;
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
    authorizer: Pick<Authorizer, "authorize"> = this.#authorizer,
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
        await requireMode(mode, authorizer, wanted, request);
        this.#lastModes.set(caller.name, mode, Number.POSITIVE_INFINITY);
        return impersonated(wanted, mode);
      } catch (error) {
        refusal ??= refusalOf(error, wanted);
      }
    }
    throw refusal ?? refusalOf(undefined, wanted);
  }
}

/** An authorizer that fails allows nothing; kube-apiserver answers 403, too. */
function refusalOf(error: unknown, { name }: UserInfo): StatusError {
  if (error instanceof StatusError) return error;
  return WIRE_ERRORS["impersonation-unchecked"].streaming({ name });
}

/**
 * Groups that the request names are used as they are. Without any, a service account gets its own
 * groups; in a constrained mode a node does, too.
 */
function impersonated(wanted: UserInfo, { verb, isConstrained }: ImpersonationMode): Impersonated {
  const hasOwn = wanted.groups.length === 0 && (isConstrained || serviceAccountOf(wanted.name) !== undefined);
  const groups = hasOwn ? fixedGroupsOf(wanted.name) : wanted.groups;
  const user = { ...wanted, groups: withSystemGroup({ name: wanted.name, groups }) };
  return { user, constraint: isConstrained ? verb : undefined };
}
