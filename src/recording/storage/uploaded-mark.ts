import { readFile, rm, writeFile } from "node:fs/promises";

/** Beside a recording that is in the store: `ID.cast.uploaded`. */
export const UPLOADED = ".uploaded";

/** Says that a recording was uploaded, and as which object. */
export async function markUploaded(file: string, object: object): Promise<void> {
  const text = JSON.stringify({ ...object, uploadedAt: new Date().toISOString() });
  await writeFile(`${file}${UPLOADED}`, `${text}\n`, { mode: 0o600 });
}

/** The object that a recording was uploaded as; undefined if it was not. */
export async function readUploaded(file: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    return JSON.parse(await readFile(`${file}${UPLOADED}`, "utf8"));
  } catch {
    return undefined;
  }
}

export async function removeMark(file: string): Promise<void> {
  await rm(`${file}${UPLOADED}`, { force: true });
}
