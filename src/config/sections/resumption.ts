import { checked, table } from "@sluice/client/internal/config/field";
import { boolean } from "@sluice/client/internal/config/fields";
import { bytes, count, duration } from "../number-fields.ts";

/** Sessions between Sluices that survive lost connections (protocols/resume). */
const fields = table({
  enabled: boolean("Make sessions resumable for clients that request it.", { default: true }),
  window: duration(
    "How long a session waits for its client's next connection, in whole seconds. Past it the session ends as `client-gone`.",
    {
      default: "2m",
      from: "1s",
      to: "24h",
    },
  ),
  windowBytes: bytes(
    "Unacknowledged or unread bytes in each direction of a session. Past it the writer waits.",
    {
      default: "1Mi",
      from: "64Ki",
      to: "64Mi",
    },
  ),
  maxSessions: count(
    "Concurrent resumable sessions, with clients and nodes; workers share it. Past it new sessions are not resumable.",
    {
      default: 1_000,
      from: 1,
      to: 1_000_000,
    },
  ),
  maxTotalBytes: bytes(
    "Memory of all resumable sessions; each counts as twice `windowBytes`. Past it new sessions are not resumable.",
    { default: "1Gi", from: "128Ki", to: "1Ti" },
  ),
});

export const resumption = checked(fields, ({ windowMs, windowBytes, maxTotalBytes }, section) => {
  if (windowMs % 1_000 !== 0) section.problem("window", "must be whole seconds");
  if (maxTotalBytes < 2 * windowBytes) {
    section.problem("maxTotalBytes", "must be at least twice windowBytes: one session's");
  }
});
