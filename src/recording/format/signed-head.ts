import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { COMMENT, type RecordingHead } from "./chain.ts";

/** A key's name: a digest of its public half. */
export function keyNameOf(key: KeyObject): string {
  const publicKey = key.type === "private" ? createPublicKey(key) : key;
  const spki = publicKey.export({ type: "spki", format: "der" });
  return `ed25519:${createHash("sha256").update(spki).digest("base64url").slice(0, 22)}`;
}

/** The text that is signed: JSON without spaces, keys in alphabetic order. */
function headText(head: RecordingHead): string {
  const { bytes, chunks, end, endedAt, gaps, hash, key, lines, session, startedAt } = head;
  return JSON.stringify({ bytes, chunks, end, endedAt, gaps, hash, key, lines, session, startedAt });
}

/** The last line of a recording. Its signature is over the head's text as it stands there. */
export function headLine(head: RecordingHead, privateKey: KeyObject): string {
  return lineWith(head, sign(null, Buffer.from(headText(head)), privateKey).toString("base64"));
}

export function lineWith(head: RecordingHead, signature: string): string {
  return `${COMMENT}{"head":${headText(head)},"sig":${JSON.stringify(signature)}}`;
}

export function isSignedBy(head: RecordingHead, signature: string, key: KeyObject): boolean {
  return verify(null, Buffer.from(headText(head)), key, Buffer.from(signature, "base64"));
}

/** Undefined for a value that no recorder writes as a head. */
export function parseHead(value: unknown): RecordingHead | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const head = value as Readonly<Record<string, unknown>>;
  const isHead =
    ["end", "endedAt", "hash", "key", "session", "startedAt"].every(
      (name) => typeof head[name] === "string",
    ) && ["bytes", "chunks", "gaps", "lines"].every((name) => typeof head[name] === "number");
  return isHead ? (value as RecordingHead) : undefined;
}

/** Undefined for a line that is not the last one of a recording. */
export function parseHeadLine(line: string): RecordingHead | undefined {
  if (!line.startsWith(`${COMMENT}{"head":`)) return undefined;
  try {
    return parseHead((JSON.parse(line.slice(COMMENT.length)) as { head: unknown }).head);
  } catch {
    return undefined;
  }
}
