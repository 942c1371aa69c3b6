import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, file, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { bytes, duration } from "../number-fields.ts";
import { optionalSection, section, sections } from "../section-fields.ts";
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
    "What happens if a session cannot be recorded: `refuse` ends it; `continue` marks the gap.",
    ["refuse", "continue"],
    { default: "refuse" },
  ),
});

/** The first matching rule decides. */
export type RecordingRule = ValueOf<typeof rule>;

const lock = table({
  mode: choice(
    "`GOVERNANCE`: users with a permission may delete a recording earlier. `COMPLIANCE`: no user may.",
    ["GOVERNANCE", "COMPLIANCE"],
    { required: "is required" },
  ),
  retention: duration("How long a recording is locked, from its upload.", {
    required: "is required",
    from: "1h",
    to: "876000h",
  }),
});

const storeFields = table({
  endpoint: string("The store's URL, such as `https://s3.eu-central-1.amazonaws.com`.", {
    required: "is required",
    check: checkEndpoint,
  }),
  bucket: string("The bucket, which must exist.", { required: "is required", check: checkBucket }),
  region: string("The region that requests are signed for.", { default: "us-east-1", check: checkRegion }),
  prefix: string("How the objects' names begin. Gateways with separate folders may share it.", {
    default: "recordings/",
    check: checkPrefix,
  }),
  pathStyle: boolean("Put the bucket into the URL's path; otherwise into its host name.", { default: true }),
  credentialsFile: file(
    "AWS credentials file with a section `[default]`; read for each request. Absent: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` of the environment.",
    "text",
  ),
  caFile: file(
    "CA certificates (PEM) that sign the store's certificate; read again when they change. Absent: those of Node.js.",
    "certificates",
  ),
  requestTimeout: duration("One request to the store. Past it the request is sent again.", {
    default: "30s",
    from: "1s",
    to: "10m",
  }),
  maxWaitingBytes: bytes(
    "Finished recordings that wait for their upload. Past it no recording begins; `recordOnFailure` decides.",
    { default: "10Gi", from: "1Mi", to: "1024Ti" },
  ),
  keepInFolder: duration("How long a recording stays in the folder after its upload.", {
    default: "24h",
    from: "0s",
    to: "876000h",
  }),
  objectLock: optionalSection(
    "Lock each recording; the bucket must have Object Lock enabled. Absent: no lock.",
    lock,
  ),
});

/** The store to which finished recordings are uploaded. */
export type RecordingStore = ValueOf<typeof storeFields>;

const recordingStore = checked(storeFields, (store, section) => {
  if (!store.pathStyle && store.bucket.includes(".") && store.endpoint.startsWith("https:"))
    section.problem("pathStyle", "must be true for a bucket with dots: no certificate is valid for its name");
});

function checkEndpoint(value: string): string | undefined {
  const shape = "must be https://host or http://host";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) return shape;
  if (url.username !== "" || url.password !== "") return "must not hold credentials; use credentialsFile";
  const isPlain = url.search === "" && url.hash === "" && url.hostname !== "";
  return (url.protocol === "http:" || url.protocol === "https:") && isPlain ? undefined : shape;
}

function checkBucket(value: string): string | undefined {
  return /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(value)
    ? undefined
    : "must be 3 to 63 lower-case letters, digits, dots and dashes";
}

function checkRegion(value: string): string | undefined {
  return /^[A-Za-z0-9-]{1,64}$/.test(value) ? undefined : "must be up to 64 letters, digits and dashes";
}

function checkPrefix(value: string): string | undefined {
  return /^[\w.-][\w./-]{0,254}$/.test(value) && !value.includes("//") && !/(^|\/)\.{1,2}(\/|$)/.test(value)
    ? undefined
    : "must be up to 255 letters, digits, dots, dashes, underscores and single slashes";
}

const fields = table({
  folder: file(
    "Folder of the recordings; it is created if it does not exist. Replicas may share it.",
    undefined,
    {
      required: "is required: recordings are written there",
    },
  ),
  rules: {
    ...sections(
      "Rules are tried in order; the first match decides. A session that matches no rule is not recorded.",
      rule,
    ),
    isReloaded: true,
  },
  maxOutputBytes: bytes(
    "How much output of one session is recorded. Past it output is counted, not recorded.",
    {
      default: "64Mi",
      from: "4Ki",
      to: "1Ti",
    },
  ),
  maxQueuedBytesPerSession: bytes(
    "Output of one session that waits to be written. The session is held 128 KiB before this. Past it `recordOnFailure` decides.",
    {
      default: "1Mi",
      from: "256Ki",
      to: "1Gi",
    },
  ),
  maxQueuedBytes: bytes(
    "Output of all sessions that waits to be written. Sessions are held from 7/8 of it on. Past it `recordOnFailure` decides.",
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
    ...bytes("Bytes of all finished recordings. Past it the oldest are deleted. 0: no limit.", {
      default: 0,
      from: 0,
      to: "1024Ti",
    }),
    isReloaded: true,
  },
  signingKeyFile: file(
    "Ed25519 private key (PKCS#8, PEM) that signs recordings. Absent: Sluice creates one in the folder.",
    "signing key",
  ),
  s3: optionalSection(
    "An S3-compatible store that finished recordings are uploaded to. Absent: they stay in the folder.",
    recordingStore,
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
