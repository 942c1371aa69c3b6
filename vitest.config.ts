import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LONG_TESTS } from "./test/support/long-tests.ts";
import { workspaceSources } from "./test/support/workspace-sources.ts";

/** Half the time of all unit tests: properties with thousands of cases, growth, and threads. `npm run unit` leaves them out. */
const PROPERTIES = [
  "test/architecture/linear-patterns.test.ts",
  "test/unit/access/authz/rbac/differential.test.ts",
  "test/unit/api/validation/any-object.test.ts",
  "test/unit/cluster/manifest-files.test.ts",
  "test/unit/cluster/manifest-source.test.ts",
  "test/unit/cluster/read-in-thread.test.ts",
  "test/unit/cluster/recorded-objects.test.ts",
  "test/unit/lifecycle/slices.test.ts",
  "test/unit/protocols/http1/fuzz.test.ts",
  "test/unit/protocols/resume/byte-queue.test.ts",
  "test/unit/protocols/spdy/fuzz.test.ts",
  "test/unit/protocols/websocket/fuzz.test.ts",
  "test/unit/probes/probe-target.test.ts",
  "test/unit/recording/tampering.test.ts",
  "test/unit/sessions/pass-through-splits.test.ts",
  "test/unit/sessions/screens/screens.test.ts",
  "test/unit/sessions/screens/serialize-screen.test.ts",
  "test/unit/sessions/status-splits.test.ts",
];

/** They count the process's own sockets, handles or memory, and may not share it with what another file left open a moment ago. */
const ALONE = [
  "test/architecture/walks.test.ts",
  "test/fuzz/byte-by-byte.test.ts",
  "test/integration/client/bulk-streams.test.ts",
  "test/integration/client/connect.test.ts",
  "test/integration/client/get-object.test.ts",
  "test/integration/client/idle-connection.test.ts",
  "test/integration/client/port-forward.test.ts",
  "test/integration/client/socks-proxy.test.ts",
  "test/integration/client/spdy-executor.test.ts",
  "test/integration/client/websocket-executor.test.ts",
  "test/integration/fake-node/lifetime.test.ts",
  "test/integration/http/header-copies.test.ts",
  "test/integration/http/http-bodies.test.ts",
  "test/integration/http/http-forwarder-failures.test.ts",
  "test/integration/http/http1-pool.test.ts",
  "test/integration/http/upgrade/copy-refusal.test.ts",
  "test/integration/http/upgrade/upgrade-request.test.ts",
  "test/integration/http/upstream/http-forwarder.test.ts",
  "test/integration/http/upstream/response-body.test.ts",
  "test/integration/legs/api-server/shutdown.test.ts",
  "test/integration/net/dial.test.ts",
  "test/integration/net/egress-proxy.test.ts",
  "test/integration/net/spare-connections.test.ts",
  "test/integration/nodes/misbehaving-nodes.test.ts",
  // V8 does not count all calls of functions that other files ran before.
  "test/integration/recording/unrecorded-sessions.test.ts",
  "test/integration/sessions/forward-upgrade.test.ts",
];

export default defineConfig({
  resolve: { alias: workspaceSources },
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
    // Bounds for busy machines: what passes takes a fraction of them.
    testTimeout: 60_000,
    expect: { poll: { timeout: 30_000, interval: 20 } },
    hookTimeout: 120_000,
    // A view of freed memory shows at once (packages/client/src/net/freed-memory.ts).
    env: { SLUICE_POISON_READS: "1" },
    projects: [
      {
        extends: true,
        // No servers, processes or sockets: nothing to be kept apart, so that all files of a thread share their modules.
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/architecture/**/*.test.ts"],
          exclude: [...PROPERTIES, ...ALONE],
          pool: "threads",
          isolate: false,
        },
      },
      {
        extends: true,
        // Growth is judged by the CPU time of a process, which threads would share.
        test: { name: "properties", include: PROPERTIES, pool: "forks", isolate: false },
      },
      {
        extends: true,
        test: {
          name: "integration",
          sequence: { groupOrder: 1 },
          include: ["test/{integration,fuzz,support}/**/*.test.ts"],
          exclude: [...ALONE, ...LONG_TESTS],
          // A quarter of the time was modules read again for each file.
          isolate: false,
          // They wait more than they compute.
          maxWorkers: availableParallelism() + 2,
        },
      },
      {
        extends: true,
        test: { name: "alone", sequence: { groupOrder: 2 }, include: ALONE },
      },
      {
        extends: true,
        // A process for each file, as those that are alone; most of the work is in programs that they start.
        test: { name: "long", sequence: { groupOrder: 3 }, include: [...LONG_TESTS] },
      },
      {
        extends: true,
        // Real parts come last and share the machine's containerd, ports and memory: one file after the other.
        test: {
          name: "real",
          sequence: { groupOrder: 4 },
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
