import { describe, expect, it } from "vitest";
import type { AuditEvent } from "../../../../src/access/audit/audit-event.ts";
import { writeEvent } from "../../../../src/access/audit/audit-log.ts";

const event = { kind: "Event", auditID: "id", annotations: { kept: "yes" } } as unknown as AuditEvent;
const written = (members: object) =>
  JSON.parse(writeEvent({ ...event, ...members })) as Record<string, unknown>;

function nested(levels: number): object {
  let value: object = {};
  for (let level = 1; level < levels; level += 1) value = { value };
  return value;
}

describe("the line of an audit event", () => {
  it("holds objects up to the bound on depth", () => {
    expect(written({ requestObject: nested(64) })).toEqual({ ...event, requestObject: nested(64) });
  });

  it.each([65, 100_000])("leaves out an object of %s levels and says so", (levels) => {
    const reason = "nested deeper than 64 levels";
    expect(written({ requestObject: nested(levels), responseObject: {} })).toEqual({
      ...event,
      responseObject: {},
      annotations: { kept: "yes", "sluice.dev/request-object-left-out": reason },
    });
    expect(written({ responseObject: nested(levels) })).toEqual({
      ...event,
      annotations: { kept: "yes", "sluice.dev/response-object-left-out": reason },
    });
  });

  it("is there for an object that JSON cannot hold, without it", () => {
    expect(written({ requestObject: { number: 1n } })).toMatchObject({
      auditID: "id",
      annotations: { "sluice.dev/request-object-left-out": expect.stringContaining("BigInt") as string },
    });
  });
});
