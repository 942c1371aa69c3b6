import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { constants } from "node:fs";
import { link, lstat, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { keyNameOf } from "./format/signed-head.ts";

/** The folder's own key, used if the configuration names none. */
const OWN_KEY = "signing-key.pem";
/** The folder's public keys, by key name; `sluice recordings verify` reads them. */
const PUBLIC_KEYS = "keys";
/** Follows no link, and waits for no pipe, that was planted in the folder. */
const OWN = {
  encoding: "utf8",
  flag: constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
} as const;

/**
 * Reads the private key (PEM) from `file` or the folder, where a missing one is created, and writes the
 * public key to the folder. Throws ConfigurationError if the key is not Ed25519.
 */
export async function readSigningKey(folder: string, file: string | undefined): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const pem = file === undefined ? await ownKey(folder) : (await readUpTo(file)).toString();
  const privateKey = parseSigningKey(pem, file ?? path.join(folder, OWN_KEY));
  const publicPem = createPublicKey(privateKey).export({ type: "spki", format: "pem" });
  const name = `${keyNameOf(privateKey).replace(":", "-")}.pem`;
  await publish(path.join(folder, PUBLIC_KEYS), name, publicPem.toString());
  return pem;
}

/** Replaces a link at the file's name. Rejects with the system's error, ENOTDIR for a linked folder. */
async function publish(folder: string, name: string, pem: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (!(await lstat(folder)).isDirectory())
    throw Object.assign(new Error(`${folder} is a link`), { code: "ENOTDIR" });
  const file = path.join(folder, name);
  if ((await readFile(file, OWN).catch(() => undefined)) === pem) return;
  const made = `${file}.${process.pid}.${performance.now()}`;
  await writeFile(made, pem, { mode: 0o644, flag: "wx" });
  await rename(made, file);
}

/** Throws ConfigurationError if the key is not Ed25519. */
export function parseSigningKey(pem: string, file: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // The original error is dropped: its text may be secret.
  }
  const message = "is not an Ed25519 private key (PKCS#8, PEM)";
  throw new ConfigurationError([{ source: file, line: 0, column: 0, path: "", message }]);
}

/** Several processes may create the key at once; the first one's is kept. */
async function ownKey(folder: string): Promise<string> {
  const file = path.join(folder, OWN_KEY);
  const there = await readFile(file, OWN).catch((error: NodeJS.ErrnoException) => {
    // The key of another user must not sign sessions.
    if (error.code === "ELOOP") throw error;
  });
  if (there !== undefined) return there;
  const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const made = `${file}.${process.pid}.${performance.now()}`;
  await writeFile(made, pem, { mode: 0o600, flag: "wx" });
  await link(made, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(made);
  return await readFile(file, OWN);
}
