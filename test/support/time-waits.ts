import { existsSync, readFileSync } from "node:fs";
import { eventually } from "./eventually.ts";

const TCP_TABLE = "/proc/net/tcp";
const TIME_WAIT = "06";
const LISTEN = "0A";

export const hasTcpTable = existsSync(TCP_TABLE);

/** How many sockets in TIME_WAIT each side of a server's connections keeps, once none of these is open. IPv4. */
export async function timeWaitsOf(port: number): Promise<{ client: number; server: number }> {
  return eventually("no open connection", () => {
    const { clients, servers } = statesOf(port);
    const isOpen = [...clients, ...servers].some((state) => state !== TIME_WAIT && state !== LISTEN);
    return !isOpen && { client: timeWaitsIn(clients), server: timeWaitsIn(servers) };
  });
}

function statesOf(port: number) {
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync(TCP_TABLE, "utf8").trim().split("\n").slice(1);
  const sockets = rows.map((row) => row.trim().split(/\s+/));
  const states = (column: number): string[] =>
    sockets.filter((socket) => socket[column]?.endsWith(end)).map((socket) => socket[3] ?? "");
  return { clients: states(2), servers: states(1) };
}

function timeWaitsIn(states: readonly string[]): number {
  return states.filter((state) => state === TIME_WAIT).length;
}
