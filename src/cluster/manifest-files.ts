import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { ConfigurationError, unreadFile } from "@sluice/client/internal/config/configuration-error";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import type { ManifestFile } from "./manifests.ts";

/**
 * The size of one manifest file. Past it, it is refused before it is read, and the last good state
 * stays.
 */
const MAX_MANIFEST_FILE_BYTES = 16 * 1024 * 1024;
/**
 * Files in a folder of manifests. Past it the folder is refused before any file is read, and the
 * last good state stays.
 */
const MAX_MANIFEST_FILES = 1_000;

/**
 * Reads manifest files, and from folders the files that kubectl would apply: `*.yaml`, `*.yml`,
 * `*.json`, but not the hidden `..<date>` of mounted ConfigMaps. Throws ConfigurationError.
 */
export async function readManifestFiles(paths: readonly string[]): Promise<ManifestFile[]> {
  const names = [...new Set((await Promise.all(paths.map(filesOf))).flat())];
  if (names.length > MAX_MANIFEST_FILES) {
    throw unreadable(
      paths[0] ?? "",
      `${names.length} manifest files, at most ${MAX_MANIFEST_FILES} are read`,
    );
  }
  const files: ManifestFile[] = [];
  // Reads one file at a time: a thousand open files could exceed the process's limit.
  for (const name of names) files.push(await readOne(name));
  return files;
}

async function filesOf(givenPath: string): Promise<string[]> {
  if (!(await statOf(givenPath)).isDirectory()) return [givenPath];
  const names = (await readdir(givenPath)).filter((name) => /^[^.].*\.(?:ya?ml|json)$/i.test(name)).sort();
  return names.map((name) => path.join(givenPath, name));
}

async function readOne(name: string): Promise<ManifestFile> {
  const text = await textOf(name);
  // A program that replaces a file in place empties it first. If the disk is full, the file stays
  // empty.
  if (text.trim() === "") throw unreadable(name, "the file holds no object", 1);
  return { name, text };
}

async function textOf(name: string): Promise<string> {
  try {
    return (await readUpTo(name, MAX_MANIFEST_FILE_BYTES)).toString("utf8");
  } catch (error) {
    throw unreadFile(name, error);
  }
}

async function statOf(name: string): ReturnType<typeof stat> {
  try {
    return await stat(name);
  } catch (error) {
    throw unreadFile(name, error);
  }
}

function unreadable(source: string, message: string, line = 0): ConfigurationError {
  return new ConfigurationError([{ source, line, column: 0, path: "", message }]);
}
