import { goQuote } from "@sluice/client/internal/api/go-json";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { UserInfo } from "../user-info.ts";
import { extraOf } from "./extra-headers.ts";
import { headerText } from "./header-text.ts";

const EXTRA_PREFIX = "Impersonate-Extra-";
/**
 * Names and values to impersonate in one request; each takes one or two authorizer requests. Past
 * it: 431.
 */
const MAX_WANTED = 500;

/**
 * The user that Impersonate-* headers name; undefined without any. Throws StatusError 400 for parts
 * without a name, in the words of kube-apiserver 1.37, and 431 for too many.
 */
export function wantedUserOf(headers: readonly (readonly [string, string])[]): UserInfo | undefined {
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
