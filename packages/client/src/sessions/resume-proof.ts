import { createHmac, timingSafeEqual } from "node:crypto";
import { proofTextOf, type Resumption } from "@sluice/protocols/resume";

/** Proves that the client has the session's key. Valid for one attempt. */
export function proofOf(key: string, resumption: Omit<Resumption, "proof">): string {
  return createHmac("sha256", Buffer.from(key, "base64url"))
    .update(proofTextOf(resumption))
    .digest("base64url");
}

/** Compares in constant time. */
export function isProven(key: string, resumption: Resumption): boolean {
  const expected = Buffer.from(proofOf(key, resumption));
  const given = Buffer.from(resumption.proof);
  return expected.byteLength === given.byteLength && timingSafeEqual(expected, given);
}
