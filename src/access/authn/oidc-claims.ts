import type { JwtIssuer } from "../../config/jwt-authenticators.ts";
import type { UserInfo } from "../user-info.ts";

export type Claims = Readonly<Record<string, unknown>>;
type ClaimOptions = Pick<
  JwtIssuer,
  "usernameClaim" | "usernamePrefix" | "groupsClaim" | "groupsPrefix" | "uidClaim" | "requiredClaims"
>;

/** The user of verified claims, as in kube-apiserver; undefined if the claims do not identify one. */
export function userOfClaims(claims: Claims, options: ClaimOptions): UserInfo | undefined {
  const { usernameClaim, usernamePrefix, groupsClaim, groupsPrefix, uidClaim, requiredClaims } = options;
  const hasRequired = Object.entries(requiredClaims).every(
    ([name, value]) => claimOf(claims, name) === value,
  );
  const name = claimOf(claims, usernameClaim);
  if (!hasRequired || typeof name !== "string" || name === "") return undefined;
  // An unverified address may belong to another person. Neither the string "false" nor null
  // verifies it.
  if (
    usernameClaim === "email" &&
    ![undefined, true].includes(claimOf(claims, "email_verified") as undefined)
  ) {
    return undefined;
  }
  const groups = groupsClaim === undefined ? [] : groupsOf(claimOf(claims, groupsClaim));
  const uid = uidClaim === undefined ? "" : claimOf(claims, uidClaim);
  if (groups === undefined || typeof uid !== "string") return undefined;
  return {
    name: usernamePrefix + name,
    uid,
    groups: groups.map((group) => groupsPrefix + group),
    extra: {},
  };
}

/** A single group may be a plain string. */
function groupsOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [value];
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isList ? value : undefined;
}

function claimOf(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}
