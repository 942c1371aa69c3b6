import { expect, it } from "vitest";
import { SharedPlaces } from "../../../src/app/runtime/shared-places.ts";

it("places are counted over all workers: in total, by user, by namespace; those of a dead worker are free", () => {
  const places = new SharedPlaces(4, { maxSessionsPerUser: 2, maxSessionsPerNamespace: 3 });
  const [one, other] = [{}, {}];
  const taken = places.take(one, "ann", "a");
  expect(places.take(other, "ann", "b")).toEqual({ place: 2 });
  expect(places.take(other, "ann", "c")).toEqual({
    refusal: 'user "ann" has 2 streaming sessions already, which is the limit',
  });
  places.take(one, "bob", "a");
  places.take(one, "eve", "a");
  expect(places.take(other, "joe", "z")).toEqual({
    refusal: "too many streaming sessions, please try again later",
  });
  if ("place" in taken) for (let times = 0; times < 2; times += 1) places.giveBack(taken.place);
  expect(places.taken).toBe(3);
  places.giveBackAllOf(one);
  expect(places.taken).toBe(1);
  expect(places.take(one, "ann", "a")).toEqual({ place: 5 });
});
