import { defineConfig } from "vitest/config";
import { workspaceSources } from "../support/workspace-sources.ts";

/** A configuration of its own: `npm test` starts no cluster. */
export default defineConfig({
  ssr: { resolve: { conditions: ["source"] } },
  resolve: { alias: workspaceSources },
  test: {
    name: "cluster",
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/cluster/**/*.test.ts"],
    reporters: [
      "default",
      "./test/support/closing-table-reporter.ts",
      "./test/support/failed-files-reporter.ts",
    ],
    setupFiles: ["./test/support/compare-bytes.ts"],
    globalSetup: ["./test/support/build-once.ts", "./test/cluster/global-setup.ts"],
    env: { SLUICE_POISON_READS: "1" },
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 300_000,
    teardownTimeout: 120_000,
    expect: { poll: { timeout: 10_000 } },
  },
});
