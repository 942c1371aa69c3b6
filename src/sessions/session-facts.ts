import type { Sessions } from "./sessions.ts";

/** What the process that carries a session knows of it, and no list has: a command line may contain secrets. */
export interface SessionFacts {
  /** Empty but for an exec. */
  readonly command: readonly string[];
  /** Of its user, as the session began. */
  readonly groups: readonly string[];
}

/** Undefined: no such session runs in these registries, or it is one through a proxy subresource. */
export function factsIn(registries: readonly Pick<Sessions, "find">[], id: string): SessionFacts | undefined {
  for (const sessions of registries) {
    const details = sessions.find(id)?.info?.details;
    if (details !== undefined) return { command: details.command, groups: details.groups };
  }
  return undefined;
}

/** Another process's answer; undefined for any other value. */
export function readFacts(value: unknown): SessionFacts | undefined {
  const { command, groups } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return isTexts(command) && isTexts(groups) ? { command, groups } : undefined;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
