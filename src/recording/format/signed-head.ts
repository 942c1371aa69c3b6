import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { COMMENT, type RecordingHead } from "./chain.ts";

/** A key's name: a digest of its public part. */
export function keyNameOf(key: KeyObject): string {
  const publicKey = key.type === "private" ? createPublicKey(key) : key;
  const spki = publicKey.export({ type: "spki", format: "der" });
  return `ed25519:${createHash("sha256").update(spki).digest("base64url").slice(0, 22)}`;
}

/** The signed text: JSON without spaces, keys in alphabetical order. */
function headText(head: RecordingHead): string {
  const { bytes, chunks, end, endedAt, gaps, hash, key, lines, session, startedAt } = head;
  return JSON.stringify({ bytes, chunks, end, endedAt, gaps, hash, key, lines, session, startedAt });
}

/** A recording's last line. The signature covers the head's text exactly as written in this line. */
export function headLine(head: RecordingHead, privateKey: KeyObject): string {
  return lineWith(head, sign(null, Buffer.from(headText(head)), privateKey).toString("base64"));
}

export function lineWith(head: RecordingHead, signature: string): string {
  return `${COMMENT}{"head":${headText(head)},"sig":${JSON.stringify(signature)}}`;
}

export function isSignedBy(head: RecordingHead, signature: string, key: KeyObject): boolean {
  return verify(null, Buffer.from(headText(head)), key, Buffer.from(signature, "base64"));
}

/** Undefined if the value does not have the head's fields. */
export function parseHead(value: unknown): RecordingHead | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const head = value as Readonly<Record<string, unknown>>;
  const isHead =
    ["end", "endedAt", "hash", "key", "session", "startedAt"].every(
      (name) => typeof head[name] === "string",
    ) && ["bytes", "chunks", "gaps", "lines"].every((name) => Number.isFinite(head[name]));
  return isHead ? (value as RecordingHead) : undefined;
}

/** Undefined if the line is not a recording's last line. */
export function parseHeadLine(line: string): RecordingHead | undefined {
  if (!line.startsWith(`${COMMENT}{"head":`)) return undefined;
  try {
    return parseHead((JSON.parse(line.slice(COMMENT.length)) as { head: unknown }).head);
  } catch {
    return undefined;
  }
}
