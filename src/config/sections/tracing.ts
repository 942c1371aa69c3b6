import { table, type ValueOf } from "@sluice/client/internal/config/field";
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
  samplePercent: count(
    "Of all traces, how many are recorded. Those that clients began are drawn by chance: they choose the ids.",
    {
      default: 10,
      from: 0,
      to: 100,
    },
  ),
  followsClients: boolean(
    "Record what a client's `traceparent` says is recorded. Off: clients cannot fill the collector.",
    { default: false },
  ),
  maxQueuedSpans: count("Spans that wait to be sent. Past it: lost.", {
    default: 2_048,
    from: 1,
    to: 1_000_000,
  }),
  timeout: duration("One delivery to the collector.", { default: "10s", from: "100ms", to: "1m" }),
});

export type TracingSettings = ValueOf<typeof tracing>;
