import { FAULT_PLACES } from "@sluice/client/internal/observability/faults";
import { Counter, type Registry } from "prom-client";

/** Counts a process's faults, starting at 0. */
export function countFaults(registry: Registry): Counter<"where"> {
  const counter = new Counter({
    name: "sluice_internal_errors_total",
    help: "Unexpected exceptions by the place that contained them; each ended one request, exchange, session or probe. The log has their stacks.",
    labelNames: ["where"] as const,
    registers: [registry],
  });
  for (const where of FAULT_PLACES) counter.inc({ where }, 0);
  return counter;
}
