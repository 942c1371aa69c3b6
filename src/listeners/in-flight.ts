/** A member of at most one InFlight at a time. Its index is -1 while it is in none. */
export interface InFlightMember {
  inFlightIndex: number;
}

// V8 replaces a Set's table every few dozen additions, and each table refers to the next. One in the
// old space keeps later members, and everything they refer to, from being collected young.
/** A set for members that come and go with each request. */
export class InFlight<Member extends InFlightMember> implements Iterable<Member> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    if (member.inFlightIndex !== -1) return;
    member.inFlightIndex = this.#members.length;
    this.#members.push(member);
  }

  /** The last member takes over the index. Ignores members of another InFlight. */
  delete(member: Member): void {
    const { inFlightIndex: index } = member;
    if (this.#members[index] !== member) return;
    member.inFlightIndex = -1;
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#members[index] = last;
    last.inFlightIndex = index;
  }

  /** Iterates over the present members, even while members are added or deleted. */
  [Symbol.iterator](): Iterator<Member> {
    return this.#members.slice()[Symbol.iterator]();
  }
}
