import { table } from "@sluice/client/internal/config/field";
import { boolean, string } from "@sluice/client/internal/config/fields";
import { count, duration } from "../number-fields.ts";

/** OpenTelemetry traces. */
export const tracing = table({
  endpoint: string("URL of a collector's OTLP/HTTP receiver: http://collector:4318/v1/traces.", {
    required: "is required: the URL of a collector's OTLP/HTTP receiver",
    check: (value) =>
      /^https?:\/\/[^\s/]+\/\S*$/.test(value) ? undefined : "must be an http or https URL with a path",
  }),
  serviceName: string("The `service.name` of the spans.", { default: "sluice" }),
  samplePercent: count("Percentage of traces to record, chosen at random.", {
    default: 10,
    from: 0,
    to: 100,
  }),
  followsClients: boolean("Record the traces that a client's `traceparent` marks as recorded.", {
    default: false,
  }),
  maxQueuedSpans: count(
    "Spans that wait to be sent. Past it they are lost, and counted in `sluice_trace_spans_total`.",
    {
      default: 2_048,
      from: 1,
      to: 1_000_000,
    },
  ),
  timeout: duration("One delivery to the collector. Past it its spans are lost.", {
    default: "10s",
    from: "100ms",
    to: "1m",
  }),
});
