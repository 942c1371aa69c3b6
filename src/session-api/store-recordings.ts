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

/** A page of what is known of the store; `problem`: why it may have more. */
interface StorePage extends RecordingsPage {
  readonly problem?: string | undefined;
}

/** The recordings in the bucket that this replica uploads to; none without one. */
export class StoreRecordings {
  readonly #settings: StoreSettings | undefined;
  #index: BucketIndex | undefined;

  constructor(settings: StoreSettings | undefined) {
    this.#settings = settings;
  }

  /** Throws StatusError 400 for invalid selectors. */
  async page(query: RecordingsQuery): Promise<StorePage> {
    const { recordings, problem } = (await (await this.#opened())?.list()) ?? { recordings: [] };
    return { ...pageOf(recordings, query), problem };
  }

  /** Undefined if it is not there. Rejects with an Error for users if that cannot be told. */
  async find({ namespace, id }: ObjectKey): Promise<StoredRecording | undefined> {
    const named = (await (await this.#opened())?.find(id)) ?? [];
    return named.find(({ facts }) => facts.namespace === namespace);
  }

  /** The bytes from `start` to `end`, both included. Fails if the store does not give them all. */
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
    this.#index ??= new BucketIndex(this.#settings);
    return this.#index;
  }
}
