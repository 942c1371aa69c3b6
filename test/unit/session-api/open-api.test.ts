import { expect, it } from "vitest";
import { OPEN_API_DOCUMENT } from "../../../src/session-api/open-api.ts";
import { recordingObjectOf } from "../../../src/session-api/recording-object.ts";
import { streamingSessionOf } from "../../../src/session-api/streaming-session.ts";
import { listedSession } from "../../support/listed-session.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const client = { address: "10.0.0.1", agent: "kubectl" };
const session = streamingSessionOf(
  {
    ...listedSession(1),
    ...{ container: "main", ephemeral: true, tty: true, stdin: true, requestedBy: "ben", client },
    ...{ protocol: "v5.channel.k8s.io", joiners: ["ben"], worker: 1 },
  },
  1,
);
const { spec } = session;
const described = { ...session, spec: { ...spec, command: ["sh"], user: { ...spec.user, groups: ["sre"] } } };
const head = {
  ...{ bytes: 1, chunks: 1, end: "crash", endedAt: FACTS.startedAt, gaps: 0, hash: "h", key: "k", lines: 1 },
  ...{ session: FACTS.session, startedAt: FACTS.startedAt },
};
const facts = { ...FACTS, requestedBy: "ben" };
const recording = recordingObjectOf({ file: "", facts, head, bytes: 10, endedMs: 5 }, true);

interface Schema {
  readonly type: string;
  readonly properties?: Record<string, Schema>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
}

/** Each field's path and type, as an object has them. */
function fieldsOf(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return [`${path} array`];
  if (typeof value !== "object" || value === null)
    return [`${path} ${typeof value === "number" ? "integer" : typeof value}`];
  if (path === ".metadata.labels") return [`${path} object`];
  return Object.entries(value).flatMap(([name, each]) => fieldsOf(each, `${path}.${name}`));
}

/** The same of a schema. */
function describedBy({ type, properties = {} }: Schema, path = ""): string[] {
  const names = Object.entries(properties);
  return names.length === 0
    ? [`${path} ${type}`]
    : names.flatMap(([name, each]) => describedBy(each, `${path}.${name}`));
}

it.each([
  ["StreamingSession", described],
  ["Recording", recording],
])("the document describes each field of a %s, and no other", (kind, object) => {
  const { components } = OPEN_API_DOCUMENT as { components: { schemas: Record<string, Schema> } };
  const schema = components.schemas[`dev.sluice.v1alpha1.${kind}`];
  expect(schema && describedBy(schema).sort()).toEqual(fieldsOf(JSON.parse(JSON.stringify(object))).sort());
});
