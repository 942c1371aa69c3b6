// Copies a file or folder into a pod and back: node copy.mjs POD LOCAL REMOTE LOCAL_COPY
import { copyFrom, copyTo, openCluster } from "@sluice/client";

const [pod = "", local = "", remote = "", localCopy = ""] = process.argv.slice(2);
const cluster = await openCluster();
await copyTo(cluster, { pod }, local, remote, { onWarning: console.warn });
await copyFrom(cluster, { pod }, remote, localCopy, { onWarning: console.warn });
