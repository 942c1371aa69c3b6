import { FAULT_PLACES } from "@sluice/client/internal/observability/faults";
import type { Counter, Registry } from "prom-client";
import { counter, register } from "./metric-table.ts";

export const FAULT_FAMILIES = {
  internalErrors: counter(
    "sluice_internal_errors_total",
    "Unexpected exceptions by the place that contained them; each ended one request, exchange, session or probe. The log has their stacks.",
    { where: FAULT_PLACES },
  ),
};

/** Counts a process's faults. */
export function countFaults(registry: Registry): Counter<"where"> {
  return register(registry, FAULT_FAMILIES).internalErrors;
}
