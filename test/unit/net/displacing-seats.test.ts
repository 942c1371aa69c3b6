import { describe, expect, it } from "vitest";
import { DisplacingSeats } from "../../../src/net/displacing-seats.ts";

function seatsFor(seats: number, seatsPerFlow: number) {
  const places = new DisplacingSeats({ seats, seatsPerFlow });
  const displaced: string[] = [];
  let count = 0;
  const acquire = (flow: string, mayDisplace?: boolean, isDisplaceable?: () => boolean) => {
    const name = `${flow} ${count++}`;
    return places.acquire(flow, { displace: () => displaced.push(name), isDisplaceable }, mayDisplace);
  };
  return { places, displaced, acquire };
}

describe("seats that are held as long as their holders like", () => {
  it("are a flow's up to its share, and free again when released, once", () => {
    const { places, acquire } = seatsFor(10, 2);
    const first = acquire("a");
    acquire("a");
    expect([acquire("a"), places.held, places.flows]).toEqual([undefined, 2, 1]);
    first?.();
    first?.();
    expect([places.held, acquire("a") !== undefined]).toEqual([1, true]);
  });

  it("are taken from the newest of the flow that has the most", () => {
    const { places, displaced, acquire } = seatsFor(4, 3);
    for (const flow of ["a", "a", "a", "b"]) acquire(flow);
    expect(acquire("c")).toBeDefined();
    expect([displaced, places.held]).toEqual([["a 2"], 4]);
    expect(acquire("c")).toBeUndefined();
    expect(displaced).toEqual(["a 2"]);
  });

  it.each([4, 10, 100, 999])("are never all those of %s users that take what they can", (colluding) => {
    const { places, acquire } = seatsFor(1_000, 100);
    for (let round = 0; round < 100 && places.held < 1_000; round++)
      for (let user = 0; user < colluding; user++) acquire(`hostile ${user}`);
    const share = Math.floor(1_000 / (colluding + 1));
    for (let own = 0; own < Math.min(share, 100); own++) expect(acquire("honest")).toBeDefined();
    for (let user = 0; user < colluding; user++) acquire(`hostile ${user}`);
    expect(places.held).toBeLessThanOrEqual(1_000);
  });

  it("are kept by those that hold one each, and by those that cannot be displaced", () => {
    const { displaced, acquire } = seatsFor(2, 2);
    acquire("a");
    acquire("b");
    expect(acquire("c")).toBeUndefined();
    const { acquire: acquireOther } = seatsFor(2, 2);
    acquireOther("a", true, () => false);
    acquireOther("a", true, () => false);
    expect([acquireOther("b"), displaced]).toEqual([undefined, []]);
  });

  it("are taken from the next flow if the one that has the most can lose none", () => {
    const { displaced, acquire } = seatsFor(8, 3);
    for (const flow of ["a", "a", "a"]) acquire(flow, true, () => false);
    for (const flow of ["b", "b", "c", "c", "c"]) acquire(flow);
    expect(acquire("d")).toBeDefined();
    expect(displaced).toEqual(["c 7"]);
  });

  it("are not taken for a caller that may displace no other", () => {
    const { displaced, acquire } = seatsFor(2, 2);
    acquire("a");
    acquire("a");
    expect([acquire("unknown", false), displaced]).toEqual([undefined, []]);
  });

  it("release nothing for a displaced holder that leaves afterwards", () => {
    const { places, acquire } = seatsFor(2, 2);
    acquire("a");
    const newest = acquire("a");
    acquire("b");
    newest?.();
    expect([places.held, places.flows]).toEqual([2, 2]);
  });
});
