import { UsageError } from "../usage-error.ts";

/** One end of a copy, written as for `kubectl cp`. `-` is this process' stdin or stdout. */
export type CopyEnd =
  | { readonly type: "local"; readonly path: string }
  | { readonly type: "stdio" }
  | {
      readonly type: "remote";
      readonly namespace?: string | undefined;
      readonly pod: string;
      readonly path: string;
    };

/** `PATH`, `-`, `POD:PATH` or `NAMESPACE/POD:PATH`. Throws UsageError. */
export function parseCopyEnd(text: string): CopyEnd {
  if (text === "-") return { type: "stdio" };
  const colon = text.indexOf(":");
  // A pod's name neither starts with a dot nor follows a slash.
  if (colon === -1 || /^[./~\\]/.test(text)) return { type: "local", path: text };
  const owner = text.slice(0, colon).split("/");
  const path = text.slice(colon + 1);
  const [first = "", second] = owner;
  if (owner.length > 2 || first === "" || second === "") {
    throw new UsageError("filespec must match the canonical format: [[namespace/]pod:]file/path");
  }
  if (path === "") throw new UsageError("filepath can not be empty");
  return second === undefined
    ? { type: "remote", pod: first, path }
    : { type: "remote", namespace: first, pod: second, path };
}
