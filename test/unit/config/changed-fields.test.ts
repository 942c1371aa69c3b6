import { expect, it } from "vitest";
import { changedFields } from "../../../src/app/reload-configuration.ts";

const HEADER = "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n";

it.each([
  ["", "timeouts: {dial: 3s, idle: 4h}", [], ["timeouts.dial"]],
  ["limits: {spdy: {maxStreams: 50}}", "", [], ["limits.spdy.maxStreams"]],
  ["limits:", "limits: {maxHttp2Streams: 250}\nworkers: 1", [], []],
  [
    "",
    "logging: {level: debug}\npolicy: {limits: {maxSessionsPerUser: 1}}",
    ["policy.limits.maxSessionsPerUser", "logging.level"],
    [],
  ],
  [
    "policy: {rules: [{name: a, action: deny}]}",
    "policy: {rules: [{name: a, action: allow}]}",
    ["policy.rules"],
    [],
  ],
  ["", "listeners: {apiServer: {port: 6443}}", [], []],
  [
    "listeners: {kubelet: {runtime: {nodeName: a}}}",
    "listeners: {kubelet: {runtime: {nodeName: a}}, apiServer: {}}",
    [],
    ["listeners.apiServer"],
  ],
  [
    "",
    "listeners: {ingress: {}, apiServer: {port: 1}}",
    [],
    ["listeners.apiServer.port", "listeners.ingress"],
  ],
  ["listeners: {ingress: {}}", "listeners: {ingress: {httpPort: 80}}", [], ["listeners.ingress.httpPort"]],
  ["featureGates: {AllBeta: true}", "featureGates: {AllBeta: false}", [], ["featureGates"]],
  ["edge: {trustedProxies: [a, b]}", "edge: {trustedProxies: [b]}", [], ["edge.trustedProxies"]],
])("from %j to %j: %j apply in place, %j need a restart", (before, after, reloaded, needRestart) => {
  expect(changedFields(HEADER + before, HEADER + after)).toEqual({ reloaded, needRestart });
});
