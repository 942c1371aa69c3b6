import { createPublicKey, type KeyObject } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { type CheckedRecording, RecordingCheck } from "../format/check-recording.ts";
import { isSignedBy, keyNameOf } from "../format/signed-head.ts";
import { RecordingFileError } from "./recording-file-error.ts";
import { readLines } from "./recording-lines.ts";

interface Verified extends Omit<CheckedRecording, "verdict"> {
  /**
   * `unknown-key`: unchanged, but none of the given keys signed it. `misnamed`: genuine, in the place of
   * another session's recording.
   */
  readonly verdict: CheckedRecording["verdict"] | "bad-signature" | "unknown-key" | "misnamed";
}

/** Exports and copies may have any other name. */
const NAMED_BY_SESSION = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.cast$/;

/** Checks a file's chain and signature, without a server. Rejects with RecordingFileError. */
export async function verifyRecording(file: string, keys: readonly KeyObject[]): Promise<Verified> {
  const check = new RecordingCheck();
  const rest = await readLines(file, (line) => check.line(line));
  const checked = check.end(rest);
  const { head, signature } = checked;
  if (head === undefined || signature === undefined) return checked;
  const key = keys.find((each) => keyNameOf(each) === head.key);
  if (key === undefined) return { ...checked, verdict: "unknown-key", problem: `no key is ${head.key}` };
  if (isSignedBy(head, signature, key)) {
    const [, named = head.session] = NAMED_BY_SESSION.exec(path.basename(file)) ?? [];
    if (named === head.session) return checked;
    const problem = `it is the recording of session ${head.session}`;
    return { ...checked, verdict: "misnamed", problem };
  }
  return { ...checked, verdict: "bad-signature", problem: "the signature is not of this end" };
}

/** Reads public keys from these files and from the folder's `keys`. Rejects with RecordingFileError. */
export async function readPublicKeys(files: readonly string[], folder?: string): Promise<KeyObject[]> {
  const own = folder === undefined ? [] : await keysIn(path.join(folder, "keys"));
  return await Promise.all([...files, ...own].map(readPublicKey));
}

async function readPublicKey(file: string): Promise<KeyObject> {
  const pem = await readUpTo(file).catch((error: unknown) => {
    throw RecordingFileError.of(error, file);
  });
  try {
    const key = createPublicKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // Thrown below.
  }
  throw new RecordingFileError(`${file} is not an Ed25519 public key (PEM)`);
}

async function keysIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => name.endsWith(".pem")).map((name) => path.join(folder, name));
}
