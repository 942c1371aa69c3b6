import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { containerds } from "../../support/real-parts.ts";
import type { Containerd } from "../../support/real-parts-finder.ts";
import { type RunningContainerd, startContainerd } from "./start-containerd.ts";

/**
 * Tests with each containerd that was found. One of another release may not start on this machine: its tests are skipped with the reason, and
 * `running()` is undefined. The installed one must start.
 */
export function describeEachContainerd(
  tests: (running: () => RunningContainerd | undefined, binaries: Containerd) => void,
): void {
  describe.each(containerds())("containerd $version", (binaries) => {
    let containerd: RunningContainerd | undefined;
    let obstacle: string | undefined;

    beforeAll(async () => {
      try {
        containerd = await startContainerd(binaries);
      } catch (error) {
        if (binaries.isInstalled) throw error;
        obstacle = `containerd ${binaries.version} does not start on this release: ${(error as Error).message}`;
      }
    });
    beforeEach((context) => {
      context.skip(obstacle !== undefined, obstacle);
    });
    afterAll(() => containerd?.stop());

    tests(() => containerd, binaries);
  });
}
