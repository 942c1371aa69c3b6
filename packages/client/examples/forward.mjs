// Fetches a page from a port of a pod: node forward.mjs POD PORT
import { forward, openCluster } from "@sluice/client";

const [pod = "", port] = process.argv.slice(2);
const { ports, close } = await forward(await openCluster(), { pod }, [{ local: 0, remote: Number(port) }]);
const response = await fetch(`http://127.0.0.1:${ports[0]?.local}/`, { headers: { connection: "close" } });
console.log(await response.text());
await close();
