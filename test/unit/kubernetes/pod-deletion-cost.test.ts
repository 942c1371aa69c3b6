import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PodDeletionCost } from "../../../src/kubernetes/pod-deletion-cost.ts";

const INTERVAL_MS = 1_000;
const written: string[] = [];
const warnings: object[] = [];
let sessions = 0;
let failure: Error | undefined;
let cost: PodDeletionCost;

beforeEach(() => {
  vi.useFakeTimers();
  written.length = 0;
  warnings.length = 0;
  sessions = 0;
  failure = undefined;
  cost = new PodDeletionCost({
    client: {
      json: async ({ method, path, body }) => {
        if (failure !== undefined) throw failure;
        const { contentType, json } = body as { contentType: string; json: object };
        written.push(`${method} ${path} ${contentType} ${JSON.stringify(json)}`);
        return {};
      },
    },
    namespace: "sluice",
    pod: "gateway-7d9f-abcde",
    countSessions: () => sessions,
    logger: { warn: (fields) => void warnings.push(fields) },
    intervalMs: INTERVAL_MS,
  });
});

afterEach(async () => {
  await cost.stop();
  vi.useRealTimers();
});

async function intervalWith(count: number): Promise<void> {
  sessions = count;
  await vi.advanceTimersByTimeAsync(INTERVAL_MS);
}

it("is written for the own pod when the sessions come into another power of two", async () => {
  for (const count of [1, 1, 2, 3, 3, 4, 7, 8, 7, 0, 0]) await intervalWith(count);
  expect(written[0]).toBe(
    'PATCH /api/v1/namespaces/sluice/pods/gateway-7d9f-abcde application/merge-patch+json {"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"1"}}}',
  );
  expect(written.map((line) => /cost":"(\d+)"/.exec(line)?.[1])).toEqual(["1", "2", "4", "8", "7", "0"]);
});

it("is written without sessions at first: the pod may have that of a process before", async () => {
  for (const count of [0, 0, 1]) await intervalWith(count);
  expect(written.map((line) => /cost":"(\d+)"/.exec(line)?.[1])).toEqual(["0", "1"]);
});

it("is written once an interval at most", async () => {
  for (const count of [1, 100, 1, 100, 5]) {
    sessions = count;
    await vi.advanceTimersByTimeAsync(INTERVAL_MS / 5);
  }
  expect(written).toHaveLength(1);
});

it("is tried again while it fails, with one warning", async () => {
  failure = new Error("forbidden");
  for (const count of [3, 3, 3]) await intervalWith(count);
  expect(warnings).toEqual([{ namespace: "sluice", pod: "gateway-7d9f-abcde", error: failure }]);
  failure = undefined;
  await intervalWith(3);
  expect(written).toHaveLength(1);
});

it("is written no more once it is stopped", async () => {
  await cost.stop();
  await intervalWith(3);
  expect(written).toEqual([]);
});
