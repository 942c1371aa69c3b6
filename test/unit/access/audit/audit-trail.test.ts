import { expect, it } from "vitest";
import type { AuditEvent } from "../../../../src/access/audit/audit-event.ts";
import { AuditTrail } from "../../../../src/access/audit/audit-trail.ts";

it("a running session is recorded again with its annotations, from its start to its end", async () => {
  const events: AuditEvent[] = [];
  const log = {
    decide: () => ({ level: "Metadata", omitStages: [] }),
    admit: async () => {},
    record: (event: AuditEvent) => void events.push(event),
  };
  const request = { requestUri: "/", sourceAddresses: [], userAgent: "", isLongRunning: true };
  const user = { name: "ana", uid: "", groups: [], extra: {} };
  const trail = new AuditTrail(log as never, request as never, () => ({ user, verb: "create" }) as never);
  await trail.received(user);
  trail.annotate("sluice.dev/recording-chunk", "1 early");
  trail.goesOn();
  expect(events).toEqual([]);
  trail.started({ code: 101 });
  trail.annotate("sluice.dev/recording-chunk", "2 hash");
  trail.goesOn();
  trail.complete({ code: 200 });
  trail.goesOn();
  expect(
    events.map(({ stage, annotations }) => [stage, annotations?.["sluice.dev/recording-chunk"]]),
  ).toEqual([
    ["ResponseStarted", "1 early"],
    ["ResponseStarted", "2 hash"],
    ["ResponseComplete", "2 hash"],
  ]);
});
