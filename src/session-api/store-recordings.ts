import type { StoredRecording } from "../recording/reading/recording-index.ts";
import type { BucketIndex } from "../recording/storage/s3/bucket-index.ts";
import {
  pageOf,
  RECORDING_PART_BYTES,
  type RecordingsPage,
  type RecordingsQuery,
} from "./folder-recordings.ts";
import type { ObjectKey } from "./polled-feed.ts";

type StoreSettings = ConstructorParameters<typeof BucketIndex>[0];
type StoreTrust = ConstructorParameters<typeof BucketIndex>[1];

/** A page of the store's known recordings. `problem`: why the store may have more. */
interface StorePage extends RecordingsPage {
  readonly problem?: string | undefined;
}

/** The recordings in the bucket that this replica uploads to; empty if there is no bucket. */
export class StoreRecordings {
  readonly #settings: StoreSettings | undefined;
  readonly #trust: StoreTrust;
  #index: BucketIndex | undefined;

  /** `trust` may change at any time. */
  constructor(settings: StoreSettings | undefined, trust?: StoreTrust) {
    this.#settings = settings;
    this.#trust = trust;
  }

  /** Throws StatusError 400 for invalid selectors. */
  async page(query: RecordingsQuery): Promise<StorePage> {
    const { recordings, problem } = (await (await this.#opened())?.list()) ?? { recordings: [] };
    return { ...pageOf(recordings, query), problem };
  }

  /**
   * Undefined if the store does not have it. Rejects with an Error for users if the store cannot be
   * read.
   */
  async find({ namespace, id }: ObjectKey): Promise<StoredRecording | undefined> {
    const named = (await (await this.#opened())?.find(id)) ?? [];
    return named.find(({ facts }) => facts.namespace === namespace);
  }

  /** Bytes `start` to `end`, inclusive. Throws Error if the store sends fewer. */
  async *content(stored: StoredRecording, start: number, end: number): AsyncGenerator<Uint8Array, void> {
    const index = await this.#opened();
    for (let at = start; index !== undefined && at <= end; at += RECORDING_PART_BYTES)
      yield await index.part(stored, at, Math.min(RECORDING_PART_BYTES, end + 1 - at));
  }

  stop(): void {
    this.#index?.stop();
  }

  async #opened(): Promise<BucketIndex | undefined> {
    if (this.#settings === undefined) return undefined;
    const { BucketIndex } = await import("../recording/storage/s3/bucket-index.ts");
    this.#index ??= new BucketIndex(this.#settings, this.#trust);
    return this.#index;
  }
}
