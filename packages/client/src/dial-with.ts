import { type DialRequest, dial, type UpgradedConnection } from "./connect.ts";
import type { ResumeOptions } from "./session-times.ts";
import type { Target } from "./target.ts";

/** Calls `dial`, or loads and calls `dialResumable` if resumption is requested. */
export async function dialWith(
  target: Target,
  request: DialRequest,
  resume: boolean | ResumeOptions | undefined,
): Promise<UpgradedConnection> {
  if (resume === undefined || resume === false) return dial(target, request);
  const { dialResumable } = await import("./dial-resumable.ts");
  return dialResumable(target, request, resume === true ? {} : resume);
}
