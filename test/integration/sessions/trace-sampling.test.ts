import { expect, it } from "vitest";
import { openTelemetry } from "../../../src/observability/open-telemetry.ts";

const settings = {
  endpoint: "http://127.0.0.1:1/v1/traces",
  serviceName: "sluice",
  maxQueuedSpans: 1,
  timeoutMs: 100,
};
const REQUESTS = 4_000;
/** The id that every ratio of OpenTelemetry's records. */
const CHOSEN = "00-00000000000000000000000000000001-00f067aa0ba902b7-01";

it.each([
  true,
  false,
])("records its share of the traces that clients choose; following them: %s", async (followsClients) => {
  const tracing = await openTelemetry({ ...settings, samplePercent: 5, followsClients }, {
    spans: () => {},
  } as never);
  let recorded = 0;
  for (let request = 0; request < REQUESTS; request++) {
    const trace = tracing.begin({
      method: "GET",
      path: "/",
      scheme: "http",
      clientAddress: "::1",
      traceparent: [CHOSEN],
      tracestate: [],
    });
    const step = trace.begin("dial");
    step.end();
    if (trace.isRecorded) recorded += 1;
  }
  await tracing.stop();
  if (followsClients) expect(recorded).toBe(REQUESTS);
  // 5 % are 200, with a standard deviation of 14.
  else expect(Math.abs(recorded - 200)).toBeLessThan(100);
});
