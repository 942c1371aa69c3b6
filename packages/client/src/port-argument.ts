/** A local port, 0 for any free one, and the pod's port. */
export interface PortMapping {
  readonly local: number;
  readonly remote: number;
}

/**
 * Parses `80`, `8080:80`, `:80` or `0:80` as `kubectl port-forward` does. Throws Error with
 * client-go's message.
 */
export function parsePortArgument(text: string): PortMapping {
  const parts = text.split(":");
  const [first = "", second = first] = parts;
  if (parts.length > 2 || text === "") throw new Error(`invalid port format '${text}'`);
  const local = parts.length === 2 && first === "" ? 0 : parsePort("local", first);
  const remote = parsePort("remote", second);
  if (remote === 0) throw new Error("remote port must be > 0");
  return { local, remote };
}

function parsePort(side: "local" | "remote", text: string): number {
  const problem = !/^\d+$/.test(text)
    ? "invalid syntax"
    : Number(text) > 0xffff
      ? "value out of range"
      : undefined;
  if (problem === undefined) return Number(text);
  throw new Error(
    `error parsing ${side} port '${text}': strconv.ParseUint: parsing ${JSON.stringify(text)}: ${problem}`,
  );
}
