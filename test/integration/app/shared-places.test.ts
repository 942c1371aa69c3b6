import { expect, it } from "vitest";
import { SessionLimiter } from "../../../src/app/runtime/session-limiter.ts";

it("places are counted over all workers: in total, by user, by namespace; those of a dead worker are free", () => {
  const places = new SessionLimiter(4, { maxSessionsPerUser: 2, maxSessionsPerNamespace: 3 });
  const [one, other] = [{}, {}];
  const taken = places.acquire(one, "ann", "a");
  expect(places.acquire(other, "ann", "b")).toEqual({ place: 2 });
  expect(places.acquire(other, "ann", "c")).toEqual({
    refusal: 'user "ann" has 2 streaming sessions already, which is the limit',
  });
  places.acquire(one, "bob", "a");
  places.acquire(one, "eve", "a");
  expect(places.acquire(other, "joe", "z")).toEqual({
    refusal: "too many streaming sessions, please try again later",
  });
  if ("place" in taken) for (let times = 0; times < 2; times += 1) places.release(taken.place);
  expect(places.taken).toBe(3);
  places.giveBackAllOf(one);
  expect(places.taken).toBe(1);
  expect(places.acquire(one, "ann", "a")).toEqual({ place: 5 });
});
