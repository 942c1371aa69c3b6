import { existsSync, readFileSync } from "node:fs";
import { eventually } from "./eventually.ts";

const TCP_TABLE = "/proc/net/tcp";
const TIME_WAIT = "06";
const LISTEN = "0A";

export const hasTcpTable = existsSync(TCP_TABLE);

interface TcpRow {
  readonly local: string;
  readonly remote: string;
  readonly state: string;
}

/**
 * Connections of a port's earlier owner stay in TIME_WAIT for a minute. These are both ends'
 * addresses, to be left out of a count.
 */
export function earlierTimeWaits(port: number): ReadonlySet<string> {
  return new Set(rowsOf(port).filter(isTimeWait).map(nameOf));
}

/**
 * The number of sockets in TIME_WAIT on each side of a server's connections, once none is open.
 * IPv4.
 */
export async function timeWaitsOf(
  port: number,
  earlier: ReadonlySet<string> = new Set(),
): Promise<{ client: number; server: number }> {
  return eventually("no open connection", () => {
    const rows = rowsOf(port).filter((row) => !earlier.has(nameOf(row)));
    if (rows.some((row) => !isTimeWait(row) && row.state !== LISTEN)) return false;
    const waiting = rows.filter(isTimeWait);
    const server = waiting.filter(({ local }) => local.endsWith(hexPort(port))).length;
    return { client: waiting.length - server, server };
  });
}

function rowsOf(port: number): TcpRow[] {
  const end = hexPort(port);
  const lines = readFileSync(TCP_TABLE, "utf8").trim().split("\n").slice(1);
  return lines
    .map((line) => line.trim().split(/\s+/))
    .map(([, local = "", remote = "", state = ""]) => ({ local, remote, state }))
    .filter(({ local, remote }) => local.endsWith(end) || remote.endsWith(end));
}

function isTimeWait({ state }: TcpRow): boolean {
  return state === TIME_WAIT;
}

function nameOf({ local, remote }: TcpRow): string {
  return `${local} ${remote}`;
}

function hexPort(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
}
