import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { OTHER_CLIENTS, titleOf } from "../support/other-clients.ts";

/** On nodes of both kinds. */
const PODS = ["web", "web-ws"];

describe("other projects' clients on the demo", () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 60_000);
  afterAll(() => demo?.stop());

  for (const client of OTHER_CLIENTS) {
    it.skipIf(client.version === undefined)(
      `${titleOf(client)} has exit codes, 5 MB each way and 20 forwards, as far as it can`,
      async () => {
        expect(await client.run(demo.kubeconfig, PODS)).toEqual(PODS.map(() => client.checks));
      },
      250_000,
    );
  }
});
