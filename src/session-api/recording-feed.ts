import type { SessionLists } from "../admin/admin-server.ts";
import { keyOf } from "./folder-recordings.ts";
import { compareKeys, PolledFeed } from "./polled-feed.ts";
import type { RecordingObject } from "./recording-object.ts";

/** Recordings of all replicas that a process follows for watches. Past it a watch is refused. */
export const MAX_WATCHED_RECORDINGS = 50_000;
/**
 * How long recordings are remembered without a list or watch. Past it watches from earlier versions
 * get 410.
 */
const KEPT_RECORDINGS_MS = 5 * 60_000;
/** How long to wait before counting the recordings again after there were too many. */
const TOO_MANY_MS = 60_000;

/** The `holder` of recordings in the store; no replica has this name. */
export const STORE = "the store";

/** The recordings in one folder or in the store, without command lines. */
export interface HeldRecordings {
  /** The replica's name; "" for this one. */
  readonly holder: string;
  /** Changes when a recording is added or deleted; undefined from an older release. */
  readonly state: string | undefined;
  readonly items: readonly RecordingObject[];
}

export interface EveryRecording {
  readonly held: readonly HeldRecordings[];
  /** There are more than MAX_WATCHED_RECORDINGS, so `held` is incomplete. */
  readonly isTooMany: boolean;
  readonly partial: SessionLists["partial"];
  /** Why the store may have more recordings. */
  readonly storeProblem?: string | undefined;
}

/** `before`: the previous list. Folders whose state has not changed are not read again. */
type ListRecordings = (before: readonly HeldRecordings[]) => Promise<EveryRecording>;

interface Known {
  readonly recording: RecordingObject;
  readonly holder: string;
  readonly version: number;
}

/**
 * The finished recordings of all replicas as this process last listed them, and which were added or
 * deleted.
 */
export class RecordingFeed extends PolledFeed<RecordingObject> {
  readonly #list: ListRecordings;
  /** By namespace and name. */
  #known: Map<string, Known> | undefined;
  #held: readonly HeldRecordings[] = [];
  #partial: SessionLists["partial"] = [];
  #storeProblem: string | undefined;
  #tooManyUntilMs = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(list: ListRecordings) {
    super();
    this.#list = list;
  }

  /**
   * The recordings of the folders that answered the last list; undefined if there are too many to
   * watch.
   */
  get held(): readonly HeldRecordings[] | undefined {
    return this.#known && this.#held;
  }

  /**
   * The replicas that did not answer the last list. Watches do not report their recordings as
   * deleted.
   */
  get partial(): SessionLists["partial"] {
    return this.#partial;
  }

  /** Why the last list may lack recordings of the store. Watches do not report these as deleted. */
  get storeProblem(): string | undefined {
    return this.#storeProblem;
  }

  /** All recordings in list order; undefined if there are too many to watch. */
  sorted(): readonly RecordingObject[] | undefined {
    if (this.#known === undefined) return undefined;
    const all = [...this.#known.values()].map(({ recording, version }) => this.objectOf(recording, version));
    return all.sort((one, other) => compareKeys(keyOf(one), keyOf(other)));
  }

  override stop(): void {
    clearTimeout(this.#idle);
    super.stop();
  }

  protected objectOf(recording: RecordingObject, version: number): RecordingObject {
    return { ...recording, metadata: { ...recording.metadata, resourceVersion: String(version) } };
  }

  protected async collect(): Promise<void> {
    if (performance.now() < this.#tooManyUntilMs) return;
    const { held, isTooMany, partial, storeProblem } = await this.#list(this.#held);
    this.#forgetLater();
    if (isTooMany) {
      this.#tooManyUntilMs = performance.now() + TOO_MANY_MS;
      this.#forgetAll();
      return;
    }
    this.#held = held;
    this.#partial = partial;
    this.#storeProblem = storeProblem;
    const before = this.#known;
    // No watch has a version from before the first list.
    const firstVersion = before === undefined ? this.forget() : 0;
    const after = new Map<string, Known>();
    for (const { holder, items } of held)
      for (const recording of items) {
        const name = nameOf(recording);
        const version =
          before === undefined
            ? firstVersion
            : (before.get(name)?.version ?? after.get(name)?.version ?? this.changed("ADDED", recording));
        after.set(name, { recording, holder, version });
      }
    const silent = new Set(partial.map(({ replica = "" }) => replica));
    if (storeProblem !== undefined) silent.add(STORE);
    for (const [name, known] of before ?? []) {
      if (after.has(name)) continue;
      if (silent.has(known.holder)) after.set(name, known);
      else this.changed("DELETED", known.recording);
    }
    this.#known = after;
  }

  #forgetLater(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.isWatched) this.#forgetLater();
      else this.#forgetAll();
    }, KEPT_RECORDINGS_MS).unref();
  }

  #forgetAll(): void {
    this.#held = [];
    if (this.#known === undefined) return;
    this.#known = undefined;
    this.forget();
  }
}

function nameOf(recording: RecordingObject): string {
  const { namespace, id } = keyOf(recording);
  return `${namespace}/${id}`;
}
