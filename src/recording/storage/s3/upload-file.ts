import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { fileErrorOf } from "../../reading/recording-file-error.ts";
import { elementsOf, escaped, S3Error, textOf } from "./s3-answer.ts";
import type { S3Answer, S3Store } from "./s3-store.ts";

/** A longer recording is uploaded in parts of this size, or of a larger one: S3 takes 10,000 parts. */
export const PART_BYTES: number = 8 * 1024 * 1024;
const MAX_PARTS = 10_000;
const MIB = 1024 * 1024;

export interface Uploaded {
  readonly key: string;
  /** The object's version, if the bucket has versions. */
  readonly version?: string | undefined;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/**
 * Uploads a file that does not change any more, as a new object: an object of that name is never
 * replaced. Rejects with S3Error or RecordingFileError.
 */
export async function uploadFile(store: S3Store, file: string, key: string): Promise<Uploaded> {
  const sha256 = await digestOfFile(file);
  let handle: FileHandle;
  try {
    handle = await open(file);
  } catch (error) {
    throw fileErrorOf(error, file);
  }
  try {
    const { size: bytes } = await handle.stat();
    const upload = { store, key, handle, bytes, headers: headersOf(store, sha256) };
    const answer = bytes <= PART_BYTES ? await putWhole(upload) : await putParts(upload);
    return { key, version: versionOf(answer), bytes, sha256 };
  } catch (error) {
    if (!(error instanceof S3Error)) throw fileErrorOf(error, file);
    // The answer to an attempt that succeeded may have been lost.
    if (error.status !== 412 && error.status !== 404) throw error;
    return await uploadedAs(store, key, sha256, error);
  } finally {
    await handle.close();
  }
}

interface Upload {
  readonly store: S3Store;
  readonly key: string;
  readonly handle: FileHandle;
  readonly bytes: number;
  readonly headers: Readonly<Record<string, string>>;
}

async function putWhole({ store, key, handle, bytes, headers }: Upload): Promise<S3Answer> {
  const body = await readPart(handle, 0, bytes);
  return await store.call({
    method: "PUT",
    key,
    headers: { ...headers, ...NEW_ONLY, ...digestFor(store, body) },
    body,
    doing: "the upload of a recording",
  });
}

async function putParts({ store, key, handle, bytes, headers }: Upload): Promise<S3Answer> {
  const begun = await store.call({
    method: "POST",
    key,
    query: { uploads: "" },
    headers,
    doing: "the begin of an upload",
  });
  const [uploadId = ""] = elementsOf(begun.body.toString("utf8"), "UploadId").map(textOf);
  if (uploadId === "") throw new S3Error("no UploadId", begun.status, "the begin of an upload");
  try {
    const parts = await sendParts({ store, key, handle, bytes, headers }, uploadId);
    const list = parts.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
    );
    return await store.call({
      method: "POST",
      key,
      query: { uploadId },
      headers: NEW_ONLY,
      body: Buffer.from(`<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`),
      doing: "the end of an upload",
    });
  } catch (error) {
    // Parts of an upload that is not ended cost money. The next start looks for those that stay.
    await abortUpload(store, key, uploadId).catch(() => {});
    throw error;
  }
}

async function sendParts({ store, key, handle, bytes }: Upload, uploadId: string): Promise<string[]> {
  const partBytes = partBytesFor(bytes);
  const etags: string[] = [];
  for (let at = 0; at < bytes; at += partBytes) {
    const body = await readPart(handle, at, Math.min(partBytes, bytes - at));
    const { headers, status } = await store.call({
      method: "PUT",
      key,
      query: { partNumber: String(etags.length + 1), uploadId },
      headers: digestFor(store, body),
      body,
      doing: "the upload of a part",
    });
    if (headers.etag === undefined) throw new S3Error("no ETag", status, "the upload of a part");
    etags.push(headers.etag);
  }
  return etags;
}

export function partBytesFor(bytes: number): number {
  return Math.max(PART_BYTES, Math.ceil(bytes / MAX_PARTS / MIB) * MIB);
}

export async function abortUpload(store: S3Store, key: string, uploadId: string): Promise<void> {
  await store.call({ method: "DELETE", key, query: { uploadId }, doing: "the abort of an upload" });
}

/** The object of this name, if it is this file; otherwise throws `error`. */
async function uploadedAs(store: S3Store, key: string, sha256: string, error: S3Error): Promise<Uploaded> {
  const answer = await store.call({ method: "HEAD", key, doing: "the check of an upload" }).catch(() => {
    throw error;
  });
  const { headers } = answer;
  if (headers["x-amz-meta-sha256"] !== sha256)
    throw new S3Error("another object has this name", 412, "the upload of a recording");
  return { key, version: versionOf(answer), bytes: Number(headers["content-length"]), sha256 };
}

const NEW_ONLY = { "if-none-match": "*" };

function headersOf({ settings: { objectLock } }: S3Store, sha256: string): Record<string, string> {
  return {
    "content-type": "application/x-asciicast",
    "x-amz-meta-sha256": sha256,
    ...(objectLock !== undefined && {
      "x-amz-object-lock-mode": objectLock.mode,
      "x-amz-object-lock-retain-until-date": new Date(Date.now() + objectLock.retentionMs).toISOString(),
    }),
  };
}

/** S3 requires it of objects that are locked. */
function digestFor({ settings }: S3Store, body: Buffer): Record<string, string> {
  return settings.objectLock === undefined
    ? {}
    : { "content-md5": createHash("md5").update(body).digest("base64") };
}

function versionOf({ headers }: S3Answer): string | undefined {
  const version = headers["x-amz-version-id"];
  return typeof version === "string" ? version : undefined;
}

async function readPart(handle: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  for (let done = 0; done < bytes; ) {
    const { bytesRead } = await handle.read(buffer, done, bytes - done, position + done);
    if (bytesRead === 0) throw new Error("the recording became shorter");
    done += bytesRead;
  }
  return buffer;
}

async function digestOfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  try {
    for await (const part of createReadStream(file)) hash.update(part as Buffer);
  } catch (error) {
    throw fileErrorOf(error, file);
  }
  return hash.digest("hex");
}
