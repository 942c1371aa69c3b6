/** One entry of a container's `env`; only literal values count here. */
export interface EnvironmentEntry {
  readonly name?: unknown;
  readonly value?: unknown;
}

/**
 * Expands `$(NAME)` in a probe's command like the kubelet, from the container's literal `env`
 * values only. `$$(NAME)` becomes `$(NAME)`; an unknown name stays as written.
 */
export function expandCommand(
  command: readonly string[],
  environment: readonly EnvironmentEntry[] = [],
): readonly string[] {
  const values = new Map<string, string>();
  for (const { name, value } of environment) {
    if (typeof name === "string") values.set(name, typeof value === "string" ? value : "");
  }
  return command.map((argument) => {
    // No `$(` can close after the last `)`, so the search stops there.
    const end = argument.lastIndexOf(")") + 1;
    const expanded = argument
      .slice(0, end)
      .replace(/\$\$|\$\(([^)]*)\)/g, (whole, name: string | undefined) => {
        if (whole === "$$") return "$";
        return values.get(name ?? "") ?? whole;
      });
    return expanded + argument.slice(end).replaceAll("$$", () => "$");
  });
}
