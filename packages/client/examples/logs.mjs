// Prints the last lines of a pod's log: node logs.mjs POD LINES
import { pipeline } from "node:stream/promises";
import { openCluster, readLog } from "@sluice/client";

const [pod = "", lines] = process.argv.slice(2);
const log = await readLog(await openCluster(), { pod }, { tailLines: Number(lines) });
await pipeline(log, process.stdout, { end: false });
