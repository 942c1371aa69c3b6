import type { ProbeHandler } from "../../../src/api/probe-objects.ts";
import type { ProbeResult } from "../../../src/probes/probe-result.ts";
import type { ProbeOptions, ProbeTarget } from "../../../src/probes/probe-target.ts";
import { runProbe } from "../../../src/probes/run-probe.ts";

/** Runs a probe against this machine, with both gates on. */
export function probe(
  handler: ProbeHandler,
  { target = {}, ...options }: Partial<ProbeOptions> & { target?: Partial<ProbeTarget> } = {},
): Promise<ProbeResult> {
  return runProbe(
    handler,
    { host: "127.0.0.1", containerPorts: [], ...target },
    {
      timeoutMs: 5_000,
      userAgentVersion: "1.36",
      gates: { H2CContainerProbe: true, GRPCContainerProbeTLS: true },
      ...options,
    },
  );
}
