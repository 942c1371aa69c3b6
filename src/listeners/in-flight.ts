/** What belongs to one InFlight at a time; its place there is -1 while it does not. */
export interface Placed {
  place: number;
}

// A Set's table is replaced every few dozen additions and refers to the next: an old one keeps all later
// members, with what hangs on them, from being collected while they are young (V8).
/** What comes and goes with each request. */
export class InFlight<Member extends Placed> implements Iterable<Member> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    if (member.place !== -1) return;
    member.place = this.#members.length;
    this.#members.push(member);
  }

  /** The last takes its place. Nothing happens to a member of another one. */
  delete(member: Member): void {
    const { place } = member;
    if (this.#members[place] !== member) return;
    member.place = -1;
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#members[place] = last;
    last.place = place;
  }

  /** Of those that are there now, whatever comes and goes meanwhile. */
  [Symbol.iterator](): Iterator<Member> {
    return this.#members.slice()[Symbol.iterator]();
  }
}
