import { expect, it } from "vitest";
import { described, KnownProbes } from "../../../src/probes/threads/serialized-probe.ts";

const TARGET = { host: "10.0.0.1", containerPorts: [{ name: "web", containerPort: 80 }], name: "pod:main" };
const GATES = { H2CContainerProbe: true, GRPCContainerProbeTLS: true };
const OPTIONS = { timeoutMs: 1_000, userAgentVersion: "1.36", gates: GATES };

it("what was described is read as it was, and is the same object for the same text", () => {
  const handler = { httpGet: { port: "web", path: "/", httpHeaders: [{ name: "a", value: "ä" }] } };
  const known = new KnownProbes();
  const probe = known.read(described(handler, TARGET, OPTIONS));
  expect(probe).toEqual({ handler, target: TARGET, options: OPTIONS });
  expect(known.read(described(handler, { ...TARGET }, { ...OPTIONS }))).toBe(probe);
});

it.each([
  ["address", { ...TARGET, host: "10.0.0.2" }, OPTIONS],
  ["name", { ...TARGET, name: "pod:other" }, OPTIONS],
  ["ports", { ...TARGET, containerPorts: [{ name: "web", containerPort: 81 }] }, OPTIONS],
  ["time-out", TARGET, { ...OPTIONS, timeoutMs: 2_000 }],
  ["version", TARGET, { ...OPTIONS, userAgentVersion: "1.37" }],
  ["gates", TARGET, { ...OPTIONS, gates: { ...GATES, H2CContainerProbe: false } }],
])("another %s is told", (_, target, options) => {
  const handler = { httpGet: { port: "web" } };
  const before = described(handler, TARGET, OPTIONS);
  const known = new KnownProbes();
  expect(described(handler, target, options)).not.toBe(before);
  expect(known.read(described(handler, target, options))).toMatchObject({
    target,
    options: { ...options, gates: options.gates },
  });
});

it("no more are known than the bound says", () => {
  const known = new KnownProbes(2);
  const texts = [1, 2, 3].map((port) => described({ tcpSocket: { port } }, TARGET, OPTIONS));
  const [first] = texts.map((text) => known.read(text));
  expect(known.size).toBe(1);
  expect(known.read(texts[0] as string)).toEqual(first);
  expect(known.size).toBe(2);
});
