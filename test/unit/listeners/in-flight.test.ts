import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InFlight } from "../../../src/listeners/plain-requests.ts";

interface Member {
  inFlightIndex: number;
  readonly name: number;
}

const members = (count: number): Member[] =>
  Array.from({ length: count }, (_, name) => ({ name, inFlightIndex: -1 }));

describe("what is in flight", () => {
  it("holds what a Set would, in any order of additions and deletions", () => {
    const step = fc.record({ comes: fc.boolean(), which: fc.nat({ max: 7 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const all = members(8);
        const inFlight = new InFlight<Member>();
        const expected = new Set<Member>();
        for (const { comes, which } of steps) {
          const member = all[which] as Member;
          if (comes) {
            inFlight.add(member);
            expected.add(member);
          } else {
            inFlight.delete(member);
            expected.delete(member);
          }
          expect(inFlight.size).toBe(expected.size);
          expect(new Set(inFlight)).toEqual(expected);
          for (const each of all) expect(each.inFlightIndex === -1).toBe(!expected.has(each));
        }
      }),
    );
  });

  it("visits each of those that were there, though the visit ends them or begins others", () => {
    const [first, second, third, late] = members(4) as [Member, Member, Member, Member];
    const inFlight = new InFlight<Member>();
    for (const member of [first, second, third]) inFlight.add(member);
    const visited: number[] = [];
    for (const member of inFlight) {
      visited.push(member.name);
      inFlight.delete(member);
      inFlight.add(late);
    }
    expect(visited).toEqual([0, 1, 2]);
    expect([...inFlight]).toEqual([late]);
  });

  it("leaves a member of another one where it is", () => {
    const [here, there] = members(2) as [Member, Member];
    const one = new InFlight<Member>();
    const other = new InFlight<Member>();
    one.add(here);
    other.add(there);
    one.delete(there);
    expect([...one]).toEqual([here]);
    expect([...other]).toEqual([there]);
  });
});
