import { readFileSync } from "node:fs";

const root = new URL("../../", import.meta.url);

/**
 * Aliases that read the workspaces from their sources, as tsconfig.json's condition does. A
 * condition would also reach the threads of built programs, which cannot load TypeScript.
 */
export const workspaceSources = ["protocols", "packages/client", "packages/lab"].flatMap((folder) => {
  const { name, exports } = JSON.parse(readFileSync(new URL(`${folder}/package.json`, root), "utf8")) as {
    name: string;
    exports: Record<string, { source?: string }>;
  };
  return Object.entries(exports).flatMap(([entry, { source }]) => {
    if (source === undefined) return [];
    const wanted = `^${name}${entry.slice(1)}$`.replaceAll(".", "\\.").replace("*", "(.+)");
    const replacement = new URL(`${folder}/${source.slice(2)}`, root).pathname.replace("*", "$1");
    return [{ find: new RegExp(wanted), replacement }];
  });
});
