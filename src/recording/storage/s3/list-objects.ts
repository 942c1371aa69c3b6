import { elementsOf, S3Error, textOf } from "./s3-answer.ts";
import type { S3Store } from "./s3-store.ts";

/** Pages of a thousand objects that one list of the bucket reads. Past it the list is incomplete. */
export const MAX_OBJECT_PAGES = 100;

export interface StoredObject {
  readonly key: string;
  /** The recorded session's id, from the object's name. */
  readonly session: string;
  readonly bytes: number;
}

interface ObjectList {
  /** Sorted by name, and so by date. */
  readonly objects: readonly StoredObject[];
  /** False if the bucket has more objects. */
  readonly isComplete: boolean;
}

/**
 * Lists the objects that are named like recordings. Rejects with S3Error, also if the answer is not a
 * list.
 */
export async function listObjects(store: S3Store): Promise<ObjectList> {
  const { prefix } = store.settings;
  const objects: StoredObject[] = [];
  const doing = "the list of the bucket";
  let token = "";
  for (let page = 0; page < MAX_OBJECT_PAGES; page++) {
    const query = { "list-type": "2", prefix, ...(token !== "" && { "continuation-token": token }) };
    const { body, status } = await store.call({ method: "GET", key: "", query, doing });
    const text = body.toString("utf8");
    // A proxy's page may also have status 200.
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

/** Undefined if the object is not named like a recording: the bucket may hold other objects. */
function objectOf(key: string, size: string, prefix: string): StoredObject | undefined {
  const [, session] = key.startsWith(prefix) ? (NAME.exec(key.slice(prefix.length)) ?? []) : [];
  const isObject = session !== undefined && /^\d{1,15}$/.test(size);
  return isObject ? { key, session, bytes: Number(size) } : undefined;
}

function firstOf(xml: string, name: string): string {
  return textOf(elementsOf(xml, name)[0] ?? "");
}
