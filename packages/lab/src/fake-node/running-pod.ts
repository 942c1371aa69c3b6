import type { ProcessEnvironment } from "./command-process.ts";
import type { FakePod } from "./fake-pod.ts";
import type { FakeNodeLimits } from "./limits.ts";
import { MainProcess } from "./main-process.ts";

/** A pod with its running containers. */
export class RunningPod {
  readonly pod: FakePod;
  readonly #mainProcesses = new Map<string, MainProcess>();

  constructor(pod: FakePod, limits: FakeNodeLimits) {
    this.pod = pod;
    for (const container of pod.containers) {
      this.#mainProcesses.set(container.name, new MainProcess(container, this.environment, limits));
    }
  }

  get environment(): ProcessEnvironment {
    return { hostname: this.pod.name };
  }

  findContainer(name: string): MainProcess | undefined {
    return this.#mainProcesses.get(name);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#mainProcesses.values()].map((main) => main.stop()));
  }
}
