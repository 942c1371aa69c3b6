import type { RecordedFacts } from "../../../src/recording/format/asciicast.ts";

export const FACTS: RecordedFacts = {
  session: "0b6d",
  startedAt: "2026-11-22T20:00:00.250Z",
  rule: "shells",
  record: "output",
  subresource: "exec",
  namespace: "prod",
  pod: "api-7d",
  node: "node-1",
  container: "main",
  user: "ana",
  groups: ["sre"],
  command: ["sh", "-l"],
  tty: true,
  stdin: true,
  client: { address: "10.0.0.1", agent: "kubectl" },
  plan: "translate",
  planReason: "node-speaks-spdy-only",
  protocol: "v5.channel.k8s.io",
};
