import { type HeaderLine, type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import type { UserInfo } from "../../access/user-info.ts";

/** The value is base64url of the user as JSON. */
const CALLER_HEADER = "Sluice-Caller";

/** Tells the owner which user resumes the session. */
export function callerLine(user: UserInfo): HeaderLine {
  return [CALLER_HEADER, Buffer.from(JSON.stringify(user)).toString("base64url")];
}

/** The user that another process of the gateway sent; undefined if it sent none. Throws SyntaxError. */
export function callerIn(headers: HeaderList): UserInfo | undefined {
  const caller = headerValue(headers, CALLER_HEADER);
  if (caller === undefined) return undefined;
  return JSON.parse(Buffer.from(caller, "base64url").toString()) as UserInfo;
}
