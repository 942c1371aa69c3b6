import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { RecordingFileError } from "../../reading/recording-file-error.ts";
import { elementsOf, NOT_STORED, S3Error, textOf } from "./s3-answer.ts";
import type { S3Answer, S3Store } from "./s3-store.ts";

/** Longer recordings are uploaded in parts of at least this size: S3 accepts 10,000 parts. */
export const PART_BYTES: number = 8 * 1024 * 1024;
const MAX_PARTS = 10_000;
const MIB = 1024 * 1024;
/** Follows no link that was planted at a recording's name. */
const OWN = constants.O_RDONLY | constants.O_NOFOLLOW;

interface Uploaded {
  readonly key: string;
  /** The object's version, if the bucket keeps versions. */
  readonly version?: string | undefined;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/**
 * Uploads a finished file as a new object. Never replaces an existing object. Rejects with S3Error or
 * RecordingFileError.
 */
export async function uploadFile(store: S3Store, file: string, key: string): Promise<Uploaded> {
  const sha256 = await digestOfFile(file);
  let handle: FileHandle;
  try {
    handle = await open(file, OWN);
  } catch (error) {
    throw RecordingFileError.of(error, file);
  }
  try {
    const { size: bytes } = await handle.stat();
    const upload: Upload = { store, key, handle, bytes, sha256 };
    try {
      return bytes <= PART_BYTES ? await putWhole(upload) : await putParts(upload);
    } catch (error) {
      // An earlier attempt may have succeeded while its answer was lost.
      if (!(error instanceof S3Error && (error.status === 412 || error.status === 404))) throw error;
      return await uploadedAs(upload, error);
    }
  } catch (error) {
    throw error instanceof S3Error ? error : RecordingFileError.of(error, file);
  } finally {
    await handle.close();
  }
}

interface Upload {
  readonly store: S3Store;
  readonly key: string;
  readonly handle: FileHandle;
  readonly bytes: number;
  readonly sha256: string;
}

async function putWhole(upload: Upload): Promise<Uploaded> {
  const { store, key, handle, bytes, sha256 } = upload;
  const body = await readPart(handle, 0, bytes);
  await store.call({
    method: "PUT",
    key,
    headers: { ...headersOf(store, sha256), ...NEW_ONLY, ...digestFor(store, body) },
    body,
    doing: "the upload of a recording",
  });
  return await uploadedAs(upload);
}

async function putParts(upload: Upload): Promise<Uploaded> {
  const { store, key, sha256 } = upload;
  const begun = await store.call({
    method: "POST",
    key,
    query: { uploads: "" },
    headers: headersOf(store, sha256),
    doing: "the begin of an upload",
  });
  const [uploadId = ""] = elementsOf(begun.body.toString("utf8"), "UploadId").map(textOf);
  if (uploadId === "") throw new S3Error("no UploadId", begun.status, "the begin of an upload");
  try {
    const parts = await sendParts(upload, uploadId);
    const list = parts.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
    );
    await store.call({
      method: "POST",
      key,
      query: { uploadId },
      headers: NEW_ONLY,
      body: Buffer.from(`<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`),
      doing: "the end of an upload",
    });
    return await uploadedAs(upload);
  } catch (error) {
    // Parts of an unfinished upload cost money. The next start aborts uploads that remain.
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

/**
 * Checks that the object is this file, because a proxy's page also has status 200. If there is no
 * object, throws `refusal`, the store's answer to the upload.
 */
async function uploadedAs({ store, key, bytes, sha256 }: Upload, refusal?: S3Error): Promise<Uploaded> {
  const doing = "the check of an upload";
  const answer = await store.call({ method: "HEAD", key, doing }).catch((error: unknown) => {
    throw refusal ?? error;
  });
  const { headers, status } = answer;
  const stored = headers["x-amz-meta-sha256"];
  if (stored === sha256 && headers["content-length"] === String(bytes))
    return { key, version: versionOf(answer), bytes, sha256 };
  if (refusal === undefined && stored === undefined) throw new S3Error(NOT_STORED, status, doing);
  const told = refusal === undefined ? doing : "the upload of a recording";
  throw new S3Error("another object has this name", refusal?.status ?? status, told);
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

/** S3 requires the digest for locked objects. */
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
    for await (const part of createReadStream(file, { flags: OWN as never })) hash.update(part as Buffer);
  } catch (error) {
    throw RecordingFileError.of(error, file);
  }
  return hash.digest("hex");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
