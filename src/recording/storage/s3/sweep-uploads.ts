import { elementsOf, textOf } from "./s3-answer.ts";
import type { S3Store } from "./s3-store.ts";
import { abortUpload } from "./upload-file.ts";

/** Uploads of other gateways that may still go on are this young. Past it they are taken for left ones. */
export const MAX_UPLOAD_AGE_MS: number = 24 * 60 * 60_000;
/** Pages of a thousand uploads that one start reads. Past it the next start goes on. */
const MAX_PAGES = 100;

/**
 * Aborts uploads that processes which are gone have left: of recordings for which `isOwn`, and old ones.
 * Returns how many. Rejects with S3Error.
 */
export async function sweepUploads(store: S3Store, isOwn: (key: string) => boolean): Promise<number> {
  const { prefix } = store.settings;
  let aborted = 0;
  let markers: Record<string, string> = {};
  for (let page = 0; page < MAX_PAGES; page++) {
    const { body } = await store.call({
      method: "GET",
      key: "",
      query: { uploads: "", prefix, ...markers },
      doing: "the list of uploads",
    });
    const text = body.toString("utf8");
    for (const upload of elementsOf(text, "Upload")) {
      const key = firstOf(upload, "Key");
      const ageMs = Date.now() - Date.parse(firstOf(upload, "Initiated"));
      if (!key.startsWith(prefix) || !(isOwn(key) || ageMs > MAX_UPLOAD_AGE_MS)) continue;
      await abortUpload(store, key, firstOf(upload, "UploadId"));
      aborted += 1;
    }
    if (firstOf(text, "IsTruncated") !== "true") break;
    markers = {
      "key-marker": firstOf(text, "NextKeyMarker"),
      "upload-id-marker": firstOf(text, "NextUploadIdMarker"),
    };
  }
  return aborted;
}

function firstOf(xml: string, name: string): string {
  return textOf(elementsOf(xml, name)[0] ?? "");
}
