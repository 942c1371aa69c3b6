// Removes the build output, so that a renamed source file leaves nothing stale behind.
import { rmSync } from "node:fs";

rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true });
