import { cpus, loadavg } from "node:os";
import { ALL_CASES } from "../../../packages/lab/src/conformance/all-cases.ts";
import type { Endpoint } from "../../../packages/lab/src/conformance/endpoint.ts";
import { runConformance } from "../../../packages/lab/src/conformance/run-cases.ts";
import { publishSection } from "../evidence-sections.ts";
import { evidenceTable } from "../evidence-table.ts";
import { isFullRun } from "../real-parts.ts";
import { ECHO_PORT } from "./echo-pod.ts";

const MIB = 1024 * 1024;

/**
 * The reads of kubernetes/kubernetes#142376, at the size of its report and beyond. Meanwhile
 * clients send a PING every 500 ms.
 */
const READS = [
  { what: "16 MiB at 4 MiB/s", name: "steady", share: 0.6, slowBytes: 16 * MIB, slowRate: 4 * MIB },
  { what: "64 MiB at 3 MiB/s", name: "steady", share: 0.1, slowBytes: 64 * MIB, slowRate: 3 * MIB },
  { what: "16 MiB, stalled for 5 s", name: "stalled", share: 0.3, slowBytes: 16 * MIB, slowRate: 4 * MIB },
] as const;
const COLUMNS = {
  "websocket-v5": "v5",
  "websocket-v4": "v4",
  "websocket-v1": "v1",
  "websocket-v4-base64": "v4 base64",
  spdy: "SPDY",
  tunnel: "tunnel",
  "spdy-forward": "SPDY ports",
} as const;
type Path = keyof typeof COLUMNS;
const PATHS = Object.keys(COLUMNS) as readonly Path[];
/**
 * Concurrent sessions for each path: more would hide losses if the machine then reads no more than
 * it writes.
 */
const EACH_AT_ONCE = Number(process.env.SLUICE_SESSIONS_AT_ONCE ?? 2);

/**
 * Sessions for each path of a server in a full run; a whole table takes an hour on two idle cores.
 */
export const SESSIONS = Number(process.env.SLUICE_SESSIONS ?? 100);
/** The same for servers that are not Sluice's, which are tested for comparison. */
export const PEER_SESSIONS = Number(process.env.SLUICE_PEER_SESSIONS ?? Math.ceil(SESSIONS / 2));

/** A server, and the number of sessions that a full run tries for each of its paths. */
export interface SlowlyRead {
  readonly server: string;
  readonly endpoint: Endpoint;
  readonly runs: number;
}

interface Cell {
  tried: number;
  readonly problems: string[];
}

export interface SlowRow {
  readonly server: string;
  readonly what: string;
  readonly cells: ReadonlyMap<Path, Cell>;
}

/**
 * Tests each path of a server: in a full run a part of the sessions, otherwise one session for each
 * read, all at once.
 */
export async function readSlowly({ server, endpoint, runs }: SlowlyRead): Promise<SlowRow[]> {
  if (!isFullRun) return Promise.all(READS.map((read) => rowOf(server, endpoint, read, 1)));
  const rows: SlowRow[] = [];
  for (const read of READS) {
    rows.push(await rowOf(server, endpoint, read, Math.ceil(runs * read.share)));
  }
  return rows;
}

async function rowOf(
  server: string,
  endpoint: Endpoint,
  { what, name, slowBytes, slowRate }: (typeof READS)[number],
  runs: number,
): Promise<SlowRow> {
  const cells = new Map<Path, Cell>(PATHS.map((path) => [path, { tried: 0, problems: [] }]));
  const settings = { slowBytes, slowRate, stallMs: 5_000, caseTimeoutMs: 300_000, echoPort: ECHO_PORT };
  for (let done = 0; done < runs; done += EACH_AT_ONCE) {
    const copies = Math.min(EACH_AT_ONCE, runs - done);
    const cases = ALL_CASES.filter(({ id }) => id.startsWith(`slow-reader/${name}/`)).flatMap((one) =>
      Array.from({ length: copies }, () => ({ ...one, isPassive: true })),
    );
    const report = await runConformance(endpoint, { cases, settings });
    for (const { id, verdict, note = "" } of report.cases) {
      const cell = cells.get(id.split("/").at(-1) as Path);
      if (cell === undefined) throw new Error(`no column for ${id}`);
      if (verdict !== "skipped") cell.tried += 1;
      if (verdict !== "failed") continue;
      cell.problems.push(note);
      // Printed at once, because a run of an hour that is interrupted has no other list of its
      // losses.
      console.error(`${new Date().toISOString()} ${server}, ${what}, ${id}: ${note}`);
    }
  }
  return { server, what, cells };
}

/** Every session that lost bytes. */
export function losses(rows: readonly SlowRow[]): string[] {
  return rows.flatMap(({ server, what, cells }) =>
    [...cells].flatMap(([path, { problems }]) =>
      problems.map((note) => `${server}, ${what}, ${path}: ${note}`),
    ),
  );
}

/** Paths that carried no session, because the server refuses them. */
export function refusedPaths(rows: readonly SlowRow[]): Path[] {
  return PATHS.filter((path) => rows.every(({ cells }) => cells.get(path)?.tried === 0));
}

/**
 * Prints a full run's table. With SLUICE_WRITE_DOCS=1 writes it as a section of
 * docs/evidence/no-truncation.md.
 */
export function publishSlowRows(heading: string, run: string, rows: readonly SlowRow[]): void {
  const numbers = [
    ["sessions", SESSIONS],
    ["peer-sessions", PEER_SESSIONS],
    ["at-once", EACH_AT_ONCE],
  ].map(([flag, count]) => `--${flag} ${count}`);
  const command = `node bench/slow-readers.mjs ${numbers.join(" ")} --only ${run} --write`;
  const servers = [...new Set(rows.map(({ server }) => server))];
  const date = new Date().toISOString().slice(0, 10);
  const table = evidenceTable(
    ["server", ...Object.values(COLUMNS)],
    servers.map((server) => {
      const own = rows.filter((row) => row.server === server);
      return [server, ...PATHS.map((path) => sumOf(own, path))];
    }),
  );
  if (isFullRun) console.log(`${heading}\n\n${table}\n`);
  publishSection(
    "no-truncation.md",
    heading,
    `    ${command}

Run of ${date} on ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)} at the end, ${EACH_AT_ONCE} sessions of each path at a time.

${table}
`,
  );
}

/** The lost and tried sessions of all reads. */
function sumOf(rows: readonly SlowRow[], path: Path): string {
  const cells = rows.flatMap(({ cells: all }) => all.get(path) ?? []);
  const tried = cells.reduce((sum, cell) => sum + cell.tried, 0);
  return tried === 0 ? "–" : `${cells.reduce((sum, { problems }) => sum + problems.length, 0)}/${tried}`;
}
