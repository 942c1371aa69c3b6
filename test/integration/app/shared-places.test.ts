import { expect, it } from "vitest";
import { serviceUnavailable } from "../../../packages/client/src/api/status.ts";
import { SessionQuotas } from "../../../src/access/policy/component.ts";
import { SessionLimiter } from "../../../src/app/runtime/worker-sessions.ts";

it("places are counted over all workers: in total, by user, by namespace; those of a dead worker are free", async () => {
  const quotas = new SessionQuotas({ maxSessionsPerUser: 2, maxSessionsPerNamespace: 3 });
  const places = new SessionLimiter(4, quotas);
  const [one, other] = [{}, {}];
  const taken = await places.acquire(one, "ann", "a");
  expect(await places.acquire(other, "ann", "b")).toEqual({ place: 2 });
  expect(await places.acquire(other, "ann", "c")).toEqual({
    refusal: 'user "ann" has 2 streaming sessions already, which is the limit',
    code: 429,
  });
  await places.acquire(one, "bob", "a");
  await places.acquire(one, "eve", "a");
  expect(await places.acquire(other, "joe", "z")).toEqual({
    refusal: "too many streaming sessions, please try again later",
    code: 429,
  });
  if ("place" in taken) for (let times = 0; times < 2; times += 1) places.release(taken.place);
  expect(places.taken).toBe(3);
  places.giveBackAllOf(one);
  expect(places.taken).toBe(1);
  expect(await places.acquire(one, "ann", "a")).toEqual({ place: 6 });
});

it("a place that is counted after its worker is gone is given back; a count that fails takes none", async () => {
  const quotas = new SessionQuotas({ maxSessionsPerUser: undefined, maxSessionsPerNamespace: undefined });
  let count = (): void => {};
  const counted = new Promise<void>((resolve) => {
    count = resolve;
  });
  const places = new SessionLimiter(1, {
    take: async (user, namespace) => {
      await counted;
      if (user === "ann") return quotas.take(user, namespace);
      throw serviceUnavailable("sessions cannot be counted now");
    },
  });
  const worker = {};
  const asked = places.acquire(worker, "ann", "a");
  places.giveBackAllOf(worker);
  const second = places.acquire({}, "bob", "a");
  expect(await places.acquire({}, "eve", "a")).toMatchObject({ code: 429 });
  count();
  await asked;
  expect(await second).toEqual({ refusal: "sessions cannot be counted now", code: 503 });
  expect([places.taken, quotas.size]).toEqual([0, 0]);
});
