import type { OidcAuthentication } from "../../config/sections/authentication.ts";
import type { UserInfo } from "../user-info.ts";

export type Claims = Readonly<Record<string, unknown>>;
export type ClaimOptions = Pick<
  OidcAuthentication,
  "issuerUrl" | "usernameClaim" | "usernamePrefix" | "groupsClaim" | "groupsPrefix" | "requiredClaims"
>;

/** The user of verified claims, as in kube-apiserver; undefined if the claims do not identify one. */
export function userOfClaims(claims: Claims, options: ClaimOptions): UserInfo | undefined {
  const { usernameClaim, groupsClaim, groupsPrefix, requiredClaims } = options;
  const hasRequired = Object.entries(requiredClaims).every(
    ([name, value]) => claimOf(claims, name) === value,
  );
  const name = claimOf(claims, usernameClaim);
  if (!hasRequired || typeof name !== "string" || name === "") return undefined;
  // An unconfirmed address may belong to another person. The string "false" confirms nothing, nor does null.
  if (
    usernameClaim === "email" &&
    ![undefined, true].includes(claimOf(claims, "email_verified") as undefined)
  ) {
    return undefined;
  }
  const groups = groupsClaim === undefined ? [] : groupsOf(claimOf(claims, groupsClaim));
  if (groups === undefined) return undefined;
  return {
    name: usernamePrefixOf(options) + name,
    uid: "",
    groups: groups.map((group) => groupsPrefix + group),
    extra: {},
  };
}

/** Two issuers may know two people by one name, so the issuer is put in front unless told otherwise. */
function usernamePrefixOf({ usernamePrefix, usernameClaim, issuerUrl }: ClaimOptions): string {
  if (usernamePrefix === "-") return "";
  if (usernamePrefix !== undefined) return usernamePrefix;
  return usernameClaim === "email" ? "" : `${issuerUrl}#`;
}

/** One group may stand without a list around it. */
function groupsOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [value];
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isList ? value : undefined;
}

function claimOf(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}
