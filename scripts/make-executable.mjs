// npx runs the compiled programs themselves, and tsc writes them without the right to be executed.
import { chmodSync, readFileSync } from "node:fs";

const { bin } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
for (const program of Object.values(bin)) chmodSync(new URL(`../${program}`, import.meta.url), 0o755);
