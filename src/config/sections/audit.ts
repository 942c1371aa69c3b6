import type { DescribedFlag } from "@sluice/client/internal/config/field";
import { shaped, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, chosen, file, fileOf } from "@sluice/client/internal/config/fields";
import { STANDARD_OUTPUT } from "@sluice/client/internal/config/section";
import { webhookTargetFields, withTarget } from "@sluice/client/internal/config/sections/webhook-target";
import { bytes, count, duration } from "../number-fields.ts";
import { optionalSection, section } from "../section-fields.ts";

const CONFIG_FILE_FLAG = "audit-webhook-config-file";
const MODE_FLAG = "audit-webhook-mode";
const FLAG_MODES = ["batch", "blocking", "blocking-strict"] as const;
const MILLION = { from: 1, to: 1_000_000 } as const;

const log = table(
  {
    path: file("File to write events to; `-` is standard output.", undefined, {
      required: `is required; ${STANDARD_OUTPUT} is standard output`,
      flag: { name: "audit-log-path", read: (text) => (text === STANDARD_OUTPUT ? text : fileOf(text)) },
    }),
    maxBytes: bytes("Size of the file. Past it the file is rotated.", {
      default: "100Mi",
      from: "64Ki",
      to: "1Ti",
      flag: { name: "audit-log-maxsize", placeholder: "MEGABYTES", read: megabytesOf },
    }),
    maxAgeDays: count("Days after which rotated files are deleted; 0 keeps them.", {
      default: 0,
      from: 0,
      to: 36_500,
      flag: "audit-log-maxage",
    }),
    // Bounded, unlike kube-apiserver's: clients could otherwise fill the disk with requests.
    maxBackups: count("Rotated files to keep; 0 keeps all. Past it the oldest is deleted.", {
      default: 10,
      from: 0,
      to: 1_000_000,
      flag: "audit-log-maxbackup",
    }),
  },
  { keyField: "path" },
);

const throttle = table({
  enabled: boolean("Limit the rate of deliveries.", {
    default: true,
    flag: "audit-webhook-batch-throttle-enable",
  }),
  perSecond: count("Deliveries per second. Past it they wait, up to `maxQueuedEvents` events.", {
    default: 10,
    ...MILLION,
    flag: "audit-webhook-batch-throttle-qps",
  }),
  burst: count("Deliveries that may leave at once. Past it `perSecond` applies.", {
    default: 15,
    ...MILLION,
    flag: "audit-webhook-batch-throttle-burst",
  }),
});

/**
 * kube-apiserver's defaults with shorter waits: shells must not go unrecorded for 30 s, or for 10 s
 * after an outage.
 */
const webhook = table(
  {
    ...webhookTargetFields(CONFIG_FILE_FLAG),
    mode: choice(
      "`blocking`: a request waits until its event is delivered. `batch`: it does not wait.",
      ["batch", "blocking"],
      {
        default: "batch",
        flag: {
          name: MODE_FLAG,
          placeholder: FLAG_MODES.join("|"),
          choices: FLAG_MODES,
          read: (text) => (chosen(text, FLAG_MODES) === "batch" ? "batch" : "blocking"),
        },
      },
    ),
    timeout: duration("One delivery, from the request to the complete response.", {
      default: "10s",
      from: "100ms",
      to: "1m",
    }),
    maxBatchEvents: count("Events in one delivery.", {
      default: 400,
      ...MILLION,
      flag: "audit-webhook-batch-max-size",
    }),
    maxWait: duration("How long a batch waits to fill.", {
      default: "1s",
      from: "1ms",
      to: "10m",
      flag: "audit-webhook-batch-max-wait",
    }),
    maxQueuedEvents: count(
      "Events that wait for delivery. Past it `audit.onFailure` decides: 503, or lost and counted.",
      {
        default: 10_000,
        ...MILLION,
        flag: "audit-webhook-batch-buffer-size",
      },
    ),
    initialBackoff: duration("Pause after a failed delivery; it doubles with each further failure.", {
      default: "1s",
      from: "10ms",
      to: "10m",
      flag: "audit-webhook-initial-backoff",
    }),
    throttle: section(
      "Limits the rate of deliveries.",
      shaped(throttle, ({ enabled, ...rest }) => (enabled ? rest : undefined)),
    ),
  },
  {
    keyField: "kubeconfigFile",
    orphanFlag: (name) => (name === CONFIG_FILE_FLAG ? undefined : `needs --${CONFIG_FILE_FLAG} too`),
    otherFlags: [otherFlag("audit-webhook-version", "Version of the events.", ["audit.k8s.io/v1"])],
  },
);

export const audit = table({
  policyFile: file("An audit.k8s.io/v1 Policy. Absent: metadata of every request.", "audit policy", {
    flag: "audit-policy-file",
  }),
  log: optionalSection(
    "A file with one event per line.",
    shaped(log, ({ path, ...rest }) => ({ path: path === STANDARD_OUTPUT ? undefined : path, ...rest })),
  ),
  webhook: optionalSection(
    "A server that receives audit.k8s.io/v1 EventLists.",
    withTarget(webhook, "https://audit.example.com/events"),
  ),
  onFailure: choice(
    "What happens if an event cannot be stored. `refuse`: the request gets 503. `continue`: it is served, and the loss is counted.",
    ["refuse", "continue"],
    {
      default: "refuse",
      // Applies to all backends, not only to the webhook.
      impliedBy: [
        {
          name: MODE_FLAG,
          placeholder: "",
          read: (text) => (text === "blocking-strict" ? "refuse" : undefined),
        },
      ],
    },
  ),
});

type Audit = ValueOf<typeof audit>;
export type AuditLogFile = NonNullable<Audit["log"]>;

/** 0 means the default, as in kube-apiserver. */
function megabytesOf(text: string): number | null {
  if (!/^\d{1,10}$/.test(text)) {
    throw new RangeError(`must be a whole number, got ${JSON.stringify(text.slice(0, 80))}`);
  }
  return text === "0" ? null : Number(text) * 1024 * 1024;
}

/** A flag that sets no field. */
function otherFlag(name: string, sentence: string, among: readonly string[]): DescribedFlag {
  return {
    name,
    sentence,
    placeholder: among.join("|"),
    choices: among,
    read: (text) => void chosen(text, among),
  };
}
