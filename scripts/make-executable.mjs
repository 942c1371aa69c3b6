// npx runs the compiled program itself, and tsc writes it without the right to be executed.
import { chmodSync } from "node:fs";

chmodSync(new URL("../dist/src/main.js", import.meta.url), 0o755);
