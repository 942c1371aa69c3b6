/**
 * Tests that take minutes: worker processes, replicas, programs that replace one another, most of
 * the command line, kubectl, and sweeps over every defect or part. `npm run test:long`, `npm run
 * check` and CI run them; `npm test` has quicker ones.
 */
export const LONG_TESTS: readonly string[] = [
  "test/integration/api/read-only-server/kubectl.test.ts",
  "test/integration/app/nth-start.test.ts",
  "test/integration/app/orphaned-worker.test.ts",
  "test/integration/app/worker-ingress-stop.test.ts",
  "test/integration/app/worker-listeners.test.ts",
  "test/integration/app/worker-probes.test.ts",
  "test/integration/app/worker-resumption.test.ts",
  "test/integration/app/workers.test.ts",
  "test/integration/cli/conformance/conformance.test.ts",
  "test/integration/cli/copy/broken-off-folder.test.ts",
  "test/integration/cli/copy/cp.test.ts",
  "test/integration/cli/cp-full-disk.test.ts",
  "test/integration/cli/cp-large.test.ts",
  "test/integration/cli/load/load.test.ts",
  "test/integration/cli/serve/replace-program.test.ts",
  "test/integration/cli/stalled-terminal.test.ts",
  "test/integration/conformance/defects.test.ts",
  "test/integration/deploy/how-to.test.ts",
  "test/integration/ingress/own-bytes.test.ts",
  "test/integration/kubernetes/api-server/kubectl.test.ts",
  "test/integration/kubernetes/api-server/kubectl-validation.test.ts",
  "test/integration/kubernetes/live-cluster-rounds.test.ts",
  "test/integration/legs/api-server/access/kubectl-reviews.test.ts",
  "test/integration/legs/api-server/bridged-ends.test.ts",
  "test/integration/legs/api-server/own-session-bytes.test.ts",
  "test/integration/legs/api-server/stalled-memory.test.ts",
  "test/integration/peers/completed-sessions.test.ts",
  "test/integration/peers/ended-sessions.test.ts",
  "test/integration/peers/joined-sessions.test.ts",
  "test/integration/peers/replica-processes.test.ts",
  "test/integration/probes/elected-prober.test.ts",
  "test/integration/recording/gibibyte.test.ts",
];
