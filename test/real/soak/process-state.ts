import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import path from "node:path";
import { eventually } from "../../support/eventually.ts";

export interface ProcessState {
  readonly residentBytes: number;
  readonly descriptors: number;
  readonly sockets: number;
  /** Objects on the heap by class, after a collection. */
  readonly objects: ReadonlyMap<string, number>;
}

/** The flags under which a process writes a heap snapshot into its working folder when it gets SIGURG. */
export const SNAPSHOT_FLAGS = "--heapsnapshot-signal=SIGURG";

/** What a process holds now. `folder` is its working folder. */
export async function stateOf(pid: number, folder: string): Promise<ProcessState> {
  const descriptors = readdirSync(`/proc/${pid}/fd`).map((name) => targetOf(`/proc/${pid}/fd/${name}`));
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return {
    residentBytes: Number(resident) * 1024,
    descriptors: descriptors.length,
    sockets: descriptors.filter((target) => target.startsWith("socket:")).length,
    objects: await objectsOf(pid, folder),
  };
}

/** The process and those that it started. */
export function processTree(pid: number): number[] {
  const tree = [pid];
  for (const parent of tree) {
    for (const task of readdirSync(`/proc/${parent}/task`)) {
      const children = readFileSync(`/proc/${parent}/task/${task}/children`, "utf8").trim();
      if (children !== "") tree.push(...children.split(" ").map(Number));
    }
  }
  return tree;
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "closed meanwhile";
  }
}

interface Snapshot {
  readonly snapshot: {
    readonly meta: { readonly node_fields: readonly string[]; readonly node_types: readonly unknown[] };
  };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

async function objectsOf(pid: number, folder: string): Promise<Map<string, number>> {
  process.kill(pid, "SIGURG");
  const snapshot = await eventually(
    "a heap snapshot is written",
    () => {
      const name = readdirSync(folder).find(
        (file) => file.includes(`.${pid}.`) && file.endsWith(".heapsnapshot"),
      );
      if (name === undefined) return undefined;
      const file = path.join(folder, name);
      const parsed = JSON.parse(readFileSync(file, "utf8")) as Snapshot;
      rmSync(file);
      return parsed;
    },
    { timeoutMs: 120_000, intervalMs: 250 },
  );
  const { node_fields: fields, node_types: types } = snapshot.snapshot.meta;
  const kinds = types[fields.indexOf("type")] as readonly string[];
  const [type, name, width] = [fields.indexOf("type"), fields.indexOf("name"), fields.length];
  const counts = new Map<string, number>();
  for (let at = 0; at < snapshot.nodes.length; at += width) {
    if (kinds[snapshot.nodes[at + type] as number] !== "object") continue;
    const label = snapshot.strings[snapshot.nodes[at + name] as number] as string;
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  return counts;
}
