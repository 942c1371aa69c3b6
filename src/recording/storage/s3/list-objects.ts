import { elementsOf, S3Error, textOf } from "./s3-answer.ts";
import type { S3Store } from "./s3-store.ts";

/** Pages of a thousand objects that one list of the bucket takes. Past it the list is not complete. */
export const MAX_OBJECT_PAGES = 100;

export interface StoredObject {
  readonly key: string;
  /** The id of the recorded session, by the object's name. */
  readonly session: string;
  readonly bytes: number;
}

interface ObjectList {
  /** In the order of their names, which begin with dates. */
  readonly objects: readonly StoredObject[];
  /** False if the bucket has more. */
  readonly isComplete: boolean;
}

/** The bucket's objects that have names of recordings. Rejects with S3Error, also for an answer that is no list. */
export async function listObjects(store: S3Store): Promise<ObjectList> {
  const { prefix } = store.settings;
  const objects: StoredObject[] = [];
  const doing = "the list of the bucket";
  let token = "";
  for (let page = 0; page < MAX_OBJECT_PAGES; page++) {
    const query = { "list-type": "2", prefix, ...(token !== "" && { "continuation-token": token }) };
    const { body, status } = await store.call({ method: "GET", key: "", query, doing });
    const text = body.toString("utf8");
    // A proxy's page, too, may come with 200.
    if (!/<ListBucketResult[ >]/.test(text) || !text.includes("</ListBucketResult>"))
      throw new S3Error("no list", status, doing);
    for (const content of elementsOf(text, "Contents")) {
      const object = objectOf(firstOf(content, "Key"), firstOf(content, "Size"), prefix);
      if (object !== undefined) objects.push(object);
    }
    if (firstOf(text, "IsTruncated") !== "true") return { objects, isComplete: true };
    const next = firstOf(text, "NextContinuationToken");
    if (next === "" || next === token) throw new S3Error("its pages do not go on", status, doing);
    token = next;
  }
  return { objects, isComplete: false };
}

const NAME = /^\d{4}\/\d{2}\/\d{2}\/([\w-]{1,128})\.cast$/;

/** Undefined for another object: the bucket may have any. */
function objectOf(key: string, size: string, prefix: string): StoredObject | undefined {
  const [, session] = key.startsWith(prefix) ? (NAME.exec(key.slice(prefix.length)) ?? []) : [];
  const isObject = session !== undefined && /^\d{1,15}$/.test(size);
  return isObject ? { key, session, bytes: Number(size) } : undefined;
}

function firstOf(xml: string, name: string): string {
  return textOf(elementsOf(xml, name)[0] ?? "");
}
