import type { UserInfo } from "../user-info.ts";

/**
 * C0, DEL and C1 (RFC 9110 section 5.5 forbids C0 and DEL in header values), and Unicode's line
 * ends.
 */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const SPACE_AT_AN_END = /^\s|\s$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Whether an upstream would see another user: header values lose white space at their ends, and
 * UTF-8 has no lone surrogates. `system:masters ` arrives as `system:masters`.
 */
export function changesOnTheWay({ name, uid, groups, extra }: UserInfo): boolean {
  return (
    [name, uid, ...groups].some(isChangedText) ||
    Object.entries(extra).some(([key, values]) => isChangedText(key) || values.some(isChangedText))
  );
}

/** The same for one text. */
export function isChangedText(text: string): boolean {
  return SPACE_AT_AN_END.test(text) || CONTROL.test(text) || LONE_SURROGATE.test(text);
}
