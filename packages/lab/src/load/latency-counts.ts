/** HdrHistogram's buckets for two significant digits: 128 for each power of two, so a value is known to 1 per cent. */
const SUB_BUCKETS = 128;
const SUB_BITS = 7;
const LINEAR = 2 * SUB_BUCKETS;
/** The highest value, 71 minutes; larger ones count as this. */
const MAX_US = 0xffff_ffff;
/** The number of buckets. */
export const LATENCY_BUCKETS: number = LINEAR + (32 - SUB_BITS - 1) * SUB_BUCKETS;

/** Bucket and count of each non-empty bucket, for messages between processes and for reports. */
export type SparseCounts = (readonly [bucket: number, count: number])[];

/**
 * Counts latencies by bucket. Node's histograms (perf_hooks) cannot be merged across processes or
 * read by bucket, and a plot of latency over time needs both.
 */
export class LatencyCounts {
  readonly #counts = new Map<number, number>();
  #total = 0;
  #maxUs = 0;

  get total(): number {
    return this.#total;
  }

  record(latencyMs: number): void {
    const us = Math.min(Math.max(0, Math.round(latencyMs * 1_000)), MAX_US);
    if (us > this.#maxUs) this.#maxUs = us;
    this.#add(bucketOf(us), 1);
  }

  /**
   * HdrHistogram's correction: also counts the messages, due every `expectedMs`, that had to wait
   * behind this one. 0 means none.
   */
  recordExpected(latencyMs: number, expectedMs: number): void {
    this.record(latencyMs);
    if (expectedMs <= 0) return;
    for (let waitedMs = latencyMs - expectedMs; waitedMs >= expectedMs; waitedMs -= expectedMs)
      this.record(waitedMs);
  }

  add(counts: SparseCounts, maxUs: number): void {
    for (const [bucket, count] of counts) this.#add(bucket, count);
    if (maxUs > this.#maxUs) this.#maxUs = maxUs;
  }

  /**
   * The microseconds that this share of values (0 to 1) does not exceed; 0 if nothing was recorded.
   */
  percentileUs(share: number): number {
    const wanted = Math.max(1, Math.ceil(share * this.#total));
    let seen = 0;
    for (const [bucket, count] of this.toSparse()) {
      seen += count;
      if (seen >= wanted) return Math.min(upperUs(bucket), this.#maxUs);
    }
    return 0;
  }

  get maxUs(): number {
    return this.#maxUs;
  }

  /** In ascending order of buckets. */
  toSparse(): SparseCounts {
    return [...this.#counts].sort(([a], [b]) => a - b);
  }

  #add(bucket: number, count: number): void {
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
    this.#total += count;
  }
}

function bucketOf(us: number): number {
  if (us < LINEAR) return us;
  const exponent = 31 - Math.clz32(us);
  return (
    LINEAR + (exponent - SUB_BITS - 1) * SUB_BUCKETS + ((us >>> (exponent - SUB_BITS)) & (SUB_BUCKETS - 1))
  );
}

/** The largest value of a bucket, in microseconds. */
export function upperUs(bucket: number): number {
  if (bucket < LINEAR) return bucket;
  const exponent = Math.floor((bucket - LINEAR) / SUB_BUCKETS) + SUB_BITS + 1;
  const sub = (bucket - LINEAR) % SUB_BUCKETS;
  return 2 ** exponent + (sub + 1) * 2 ** (exponent - SUB_BITS) - 1;
}
