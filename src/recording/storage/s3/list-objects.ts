import { elementsOf, S3Error, textOf } from "./s3-answer.ts";
import type { S3Store } from "./s3-store.ts";

/**
 * Pages of a thousand names that one list of the bucket reads. Past it the oldest objects are not
 * listed.
 */
const MAX_OBJECT_PAGES = 100;
/** A month with more pages is listed by days: a store lists names in rising order only. */
const MONTH_PAGES = 10;

export interface StoredObject {
  readonly key: string;
  /** The recorded session's id, from the object's name. */
  readonly session: string;
  readonly bytes: number;
}

interface ObjectList {
  /** Sorted by name, and so by date. */
  readonly objects: readonly StoredObject[];
  /** False if the bucket has older objects. */
  readonly isComplete: boolean;
}

/**
 * Lists the newest objects that are named like recordings. Rejects with S3Error, also if an answer
 * is not a list.
 */
export async function listObjects(store: S3Store): Promise<ObjectList> {
  const walk = new ObjectWalk(store);
  for (const year of await walk.folders(store.settings.prefix, /^\d{4}\/$/))
    for (const month of await walk.folders(year, TWO_DIGITS)) await walk.month(month);
  return { objects: walk.newestFirst.reverse().flat(), isComplete: walk.isComplete };
}

const TWO_DIGITS = /^\d{2}\/$/;

/** Goes from new to old. At the bound of pages further lists are empty. */
class ObjectWalk {
  /** Each part is sorted by name. */
  readonly newestFirst: StoredObject[][] = [];
  isComplete = true;
  readonly #store: S3Store;
  #pages = 0;

  constructor(store: S3Store) {
    this.#store = store;
  }

  /** The folders directly below the prefix, newest first. */
  async folders(prefix: string, name: RegExp): Promise<string[]> {
    const found: string[] = [];
    for await (const page of this.#list(prefix, { delimiter: "/" }))
      for (const element of elementsOf(page, "CommonPrefixes")) {
        const folder = firstOf(element, "Prefix");
        if (folder.startsWith(prefix) && name.test(folder.slice(prefix.length))) found.push(folder);
      }
    return found.sort().reverse();
  }

  async month(month: string): Promise<void> {
    const first: StoredObject[] = [];
    let pages = 0;
    for await (const page of this.#list(month)) {
      first.push(...this.#objectsIn(page));
      pages += 1;
      if (pages < MONTH_PAGES || !isTruncated(page)) continue;
      await this.#days(month, lastKeyOf(page));
      break;
    }
    this.newestFirst.push(first);
  }

  /** The month's objects behind this key. */
  async #days(month: string, last: string): Promise<void> {
    for (const day of await this.folders(month, TWO_DIGITS)) {
      const isBegun = last.startsWith(day);
      if (!isBegun && day < last) return;
      const objects: StoredObject[] = [];
      for await (const page of this.#list(day, isBegun ? { "start-after": last } : {}))
        objects.push(...this.#objectsIn(page));
      this.newestFirst.push(objects);
    }
  }

  async *#list(prefix: string, more: Readonly<Record<string, string>> = {}): AsyncGenerator<string, void> {
    const doing = "the list of the bucket";
    for (let token = ""; ; ) {
      if (this.#pages === MAX_OBJECT_PAGES) {
        this.isComplete = false;
        return;
      }
      this.#pages += 1;
      const query = {
        "list-type": "2",
        prefix,
        ...more,
        ...(token !== "" && { "continuation-token": token }),
      };
      const { body, status } = await this.#store.call({ method: "GET", key: "", query, doing });
      const page = body.toString("utf8");
      // A proxy's page may also have status 200.
      if (!/<ListBucketResult[ >]/.test(page) || !page.includes("</ListBucketResult>"))
        throw new S3Error("no list", status, doing);
      yield page;
      if (!isTruncated(page)) return;
      const next = firstOf(page, "NextContinuationToken");
      if (next === "" || next === token) throw new S3Error("its pages do not go on", status, doing);
      token = next;
    }
  }

  #objectsIn(page: string): StoredObject[] {
    const { prefix } = this.#store.settings;
    return elementsOf(page, "Contents").flatMap((content) => {
      const object = objectOf(firstOf(content, "Key"), firstOf(content, "Size"), prefix);
      return object === undefined ? [] : [object];
    });
  }
}

const NAME = /^\d{4}\/\d{2}\/\d{2}\/([\w-]{1,128})\.cast$/;

/** Undefined if the object is not named like a recording: the bucket may hold other objects. */
function objectOf(key: string, size: string, prefix: string): StoredObject | undefined {
  const [, session] = key.startsWith(prefix) ? (NAME.exec(key.slice(prefix.length)) ?? []) : [];
  const isObject = session !== undefined && /^\d{1,15}$/.test(size);
  return isObject ? { key, session, bytes: Number(size) } : undefined;
}

function isTruncated(page: string): boolean {
  return firstOf(page, "IsTruncated") === "true";
}

function lastKeyOf(page: string): string {
  return firstOf(elementsOf(page, "Contents").at(-1) ?? "", "Key");
}

function firstOf(xml: string, name: string): string {
  return textOf(elementsOf(xml, name)[0] ?? "");
}
