import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** Half the time of all unit tests: properties with thousands of cases, and threads. `npm run unit` leaves them out. */
const PROPERTIES = [
  "test/unit/access/authz/rbac/differential.test.ts",
  "test/unit/api/validation/any-object.test.ts",
  "test/unit/cluster/manifest-files.test.ts",
  "test/unit/cluster/manifest-source.test.ts",
  "test/unit/cluster/read-in-thread.test.ts",
  "test/unit/cluster/recorded-objects.test.ts",
  "test/unit/cluster/slices.test.ts",
  "test/unit/protocols/http1/fuzz.test.ts",
  "test/unit/protocols/resume/byte-queue.test.ts",
  "test/unit/protocols/spdy/fuzz.test.ts",
  "test/unit/protocols/websocket/fuzz.test.ts",
  "test/unit/sessions/pass-through-splits.test.ts",
];

export default defineConfig({
  test: {
    // What a file is compiled to is kept in node_modules by its content: a run of few files took a quarter of its CPU for that.
    experimental: { fsModuleCache: true },
    reporters: [
      "default",
      "./test/support/threats-reporter.ts",
      "./test/support/closing-table-reporter.ts",
      "./test/support/failed-files-reporter.ts",
    ],
    globalSetup: ["./test/support/build-once.ts"],
    setupFiles: ["./test/support/compare-bytes.ts"],
    // Half of a test's time is waiting; vitest's own number leaves one of two cores to itself.
    maxWorkers: "100%",
    testTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 60_000,
    // A view of freed memory shows at once (src/net/freed-memory.ts).
    env: { SLUICE_POISON_READS: "1" },
    projects: [
      {
        extends: true,
        // No servers, processes or sockets: nothing to be kept apart, so that all files of a thread share their modules.
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/architecture/**/*.test.ts"],
          exclude: PROPERTIES,
          pool: "threads",
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: "properties", include: PROPERTIES, pool: "threads", isolate: false },
      },
      {
        extends: true,
        test: {
          name: "integration",
          sequence: { groupOrder: 1 },
          include: ["test/{integration,fuzz,support}/**/*.test.ts"],
          // They wait more than they compute: two of them leave a third of two cores idle.
          maxWorkers: availableParallelism() + 1,
        },
      },
      {
        extends: true,
        // Real parts come last and share the machine's containerd, ports and memory: one file after the other.
        test: {
          name: "real",
          sequence: { groupOrder: 2 },
          include: ["test/real/**/*.test.ts"],
          globalSetup: ["./test/support/go-peers.ts"],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
