import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { choice, file, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { bytes, duration } from "../number-fields.ts";
import { section, sections } from "../section-fields.ts";
import { checkRuleName, checkSessionMatch, sessionMatch } from "./policy.ts";

const rule = table({
  name: string("Name for refusals and recordings: up to 63 letters, digits, dots, dashes and underscores.", {
    required: "is required: refusals and recordings name the rule",
    check: checkRuleName,
  }),
  match: section(
    "Which sessions the rule applies to. Absent fields match every session.",
    checked(table(sessionMatch), checkSessionMatch),
  ),
  record: choice(
    "`output`: what the client sees; of port-forwards, ports, times and bytes. `all`: also the lines that a terminal's user typed and the terminal echoed. `none`: not recorded.",
    ["output", "all", "none"],
    { default: "output" },
  ),
  recordOnFailure: choice(
    "If a session cannot be recorded: `refuse` refuses or ends it, `continue` carries it on and marks the gap.",
    ["refuse", "continue"],
    { default: "refuse" },
  ),
});

/** The first matching rule decides. */
export type RecordingRule = ValueOf<typeof rule>;

const fields = table({
  folder: file("Folder of the recordings, made if it is absent. Replicas may share it.", undefined, {
    required: "is required: recordings are written there",
  }),
  rules: {
    ...sections(
      "Rules are tried in order; the first match decides. A session that matches no rule is not recorded.",
      rule,
    ),
    isReloaded: true,
  },
  maxOutputBytes: bytes("Output of one session that is recorded. Past it output is counted, not recorded.", {
    default: "64Mi",
    from: "4Ki",
    to: "1Ti",
  }),
  maxQueuedBytesPerSession: bytes(
    "Output of one session that waits to be written; 128 KiB before it the session is held. Past it `recordOnFailure` decides.",
    {
      default: "1Mi",
      from: "256Ki",
      to: "1Gi",
    },
  ),
  maxQueuedBytes: bytes(
    "Output of all sessions that waits to be written; from 7/8 of it sessions are held. Past it `recordOnFailure` decides.",
    {
      default: "64Mi",
      from: "1Mi",
      to: "64Gi",
    },
  ),
  maxHold: duration(
    "How long a session waits for its recording to be written. Past it `recordOnFailure` decides.",
    {
      default: "2s",
      from: "10ms",
      to: "1m",
    },
  ),
  minFreeBytes: bytes("Free space below which no recording begins; `recordOnFailure` decides.", {
    default: "256Mi",
    from: 0,
    to: "1Ti",
  }),
  maxAge: {
    ...duration("Age past which a finished recording is deleted. 0s: never.", {
      default: "2160h",
      from: "0s",
      to: "876000h",
    }),
    isReloaded: true,
  },
  maxTotalBytes: {
    ...bytes("Bytes of all finished recordings. Past it the oldest are deleted. 0: no bound.", {
      default: 0,
      from: 0,
      to: "1024Ti",
    }),
    isReloaded: true,
  },
  signingKeyFile: file(
    "Ed25519 private key (PKCS#8, PEM) that signs recordings. Absent: one that is made in the folder.",
    "text",
  ),
});

/** What is recorded, and where (docs/session-recording.md). */
export type Recording = ValueOf<typeof fields>;

export const recording = checked(fields, check);

function check(values: Recording, section: Section): void {
  const names = values.rules.map(({ name }) => name);
  for (const [index, name] of names.entries()) {
    const own = section.item("rules", index);
    if (name !== "" && names.indexOf(name) < index)
      own.problem("name", `duplicate name ${JSON.stringify(name)}`);
  }
  if (values.maxQueuedBytes < values.maxQueuedBytesPerSession)
    section.problem("maxQueuedBytes", "must not be below maxQueuedBytesPerSession");
}
