import { Session } from "node:inspector/promises";
import type { FuzzTarget } from "./targets.ts";

const MAX_INPUT_BYTES = 8 * 1024;
const OURS = /\/(?:src|protocols)\//;
/**
 * V8 counts all blocks that ran. Read once after this many inputs, the counts cost less than the
 * inputs do.
 */
const INPUTS_PER_LOOK = 50;

// Functions that ran before counting began are counted whole, without their blocks. So counting
// begins before the targets are loaded.
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });

export interface SearchResult {
  readonly inputs: number;
  /** Blocks of our source that have run. */
  readonly blocks: number;
  /** Inputs that reached a new block. */
  readonly interesting: readonly Buffer[];
  readonly finding: { readonly input: Buffer; readonly error: unknown } | undefined;
}

/**
 * Searches for an input on which `target` fails: changes known inputs, and keeps those that run new
 * blocks, as counted by V8. Ends at the first finding, or when the time is over.
 */
export async function search(
  target: FuzzTarget,
  corpus: readonly Buffer[],
  {
    seconds,
    maxInputs = Number.POSITIVE_INFINITY,
    seed = Date.now(),
  }: { seconds: number; maxInputs?: number; seed?: number },
): Promise<SearchResult> {
  const random = generator(seed);
  const known = [...target.seeds, ...corpus];
  const interesting: Buffer[] = [];
  const seen = new Set<string>();
  /** The blocks that have run since the last call. */
  const takeBlocks = async (): Promise<string[]> => {
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ url }) => OURS.test(url))
      .flatMap(({ url, functions }) =>
        functions.flatMap(({ ranges }) => ranges.map((range) => ({ url, ...range }))),
      )
      .filter(({ count }) => count > 0)
      .map(({ url, startOffset, endOffset }) => `${url}:${startOffset}:${endOffset}`);
  };
  /** The inputs of a batch that ran new blocks, each at least one that the others did not. */
  const reaching = async (batch: readonly Buffer[], fresh: Set<string>): Promise<Buffer[]> => {
    const kept: Buffer[] = [];
    for (const input of batch) {
      if (fresh.size === 0) break;
      await target.run(Buffer.from(input));
      const before = fresh.size;
      for (const block of await takeBlocks()) fresh.delete(block);
      if (fresh.size < before) kept.push(input);
    }
    return kept;
  };
  const deadline = performance.now() + seconds * 1_000;
  let inputs = 0;
  for (const input of known) await target.run(Buffer.from(input));
  for (const block of await takeBlocks()) seen.add(block);
  while (performance.now() < deadline && inputs < maxInputs) {
    const batch = Array.from({ length: INPUTS_PER_LOOK }, () => mutated(known, target.words, random));
    for (const input of batch) {
      inputs += 1;
      const error = await failureOf(target, Buffer.from(input));
      if (error !== undefined) return { inputs, blocks: seen.size, interesting, finding: { input, error } };
    }
    if (inputs >= maxInputs) break;
    const fresh = new Set((await takeBlocks()).filter((block) => !seen.has(block)));
    for (const block of fresh) seen.add(block);
    const kept = await reaching(batch, fresh);
    known.push(...kept);
    interesting.push(...kept);
  }
  return { inputs, blocks: seen.size, interesting, finding: undefined };
}

async function failureOf(target: FuzzTarget, input: Buffer): Promise<unknown> {
  try {
    await target.run(input);
    return undefined;
  } catch (error) {
    return error ?? new Error("threw nothing");
  }
}

/**
 * Makes one to four changes to a known input: a bit, a byte, a word of the format, a piece moved,
 * repeated or removed, or another input's end.
 */
function mutated(
  known: readonly Buffer[],
  words: readonly string[],
  random: (below: number) => number,
): Buffer {
  const pick = (): Buffer => known[random(known.length)] ?? Buffer.alloc(0);
  let bytes = Buffer.from(pick());
  for (let changes = 1 + random(4); changes > 0; changes--) {
    const at = random(bytes.length + 1);
    const end = Math.min(bytes.length, at + 1 + random(32));
    const [head, piece, tail] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
    const word = Buffer.from(words[random(words.length)] ?? "", "latin1");
    const next: Buffer[][] = [
      [head, Buffer.from(piece.map((byte, index) => (index === 0 ? byte ^ (1 << random(8)) : byte))), tail],
      [head, Buffer.of(random(256)), piece, tail],
      [head, word, piece, tail],
      [head, word, tail],
      [head, tail],
      [head, piece, piece, tail],
      [tail, piece, head],
      [head, pick().subarray(random(64))],
    ];
    bytes = Buffer.concat(next[random(next.length)] ?? [bytes]).subarray(0, MAX_INPUT_BYTES);
  }
  return bytes;
}

/** xorshift32, so that a seed repeats the same search. */
function generator(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}
