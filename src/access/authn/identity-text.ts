import type { UserInfo } from "../user-info.ts";

/** C0, DEL and C1 (RFC 9110 section 5.5: header values cannot hold the former), and what ends a line for Unicode. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const SPACE_AT_AN_END = /^\s|\s$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Whether the user would be another one behind us: header values lose white space at their ends, and UTF-8 has no lone
 * surrogates. `system:masters ` arrives as `system:masters`.
 */
export function changesOnTheWay({ name, uid, groups, extra }: UserInfo): boolean {
  return (
    [name, uid, ...groups].some(isChangedText) ||
    Object.entries(extra).some(([key, values]) => isChangedText(key) || values.some(isChangedText))
  );
}

/** Of one text of a user. */
export function isChangedText(text: string): boolean {
  return SPACE_AT_AN_END.test(text) || CONTROL.test(text) || LONE_SURROGATE.test(text);
}
