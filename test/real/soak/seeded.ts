/** Bytes that only this seed gives: a foreign byte in an answer, or one at another place, is seen. */
export function seededBytes(seed: number, length: number): Buffer {
  const words = new Uint32Array(Math.ceil(length / 4));
  let state = (seed * 2_654_435_761 + 1) >>> 0 || 1;
  for (let index = 0; index < words.length; index++) {
    // xorshift32 (Marsaglia, 2003)
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    words[index] = state;
  }
  return Buffer.from(words.buffer, 0, length);
}

/** Numbers of a seed: the same run again. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 747_796_405 + 2_891_336_453) >>> 0;
  }

  /** A whole number from 0 to `end`, which is excluded. */
  below(end: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * end);
  }

  between(least: number, end: number): number {
    return least + this.below(end - least);
  }

  oneOf<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }
}
