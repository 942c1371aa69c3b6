import { isSingleBinary, MANIFEST } from "./version.ts";

/** An optional dependency is not installed. The message contains the command that installs it. */
export class NotInstalledError extends Error {}

/**
 * For the `catch` of an optional import: throws NotInstalledError if the package is missing,
 * otherwise the caught error. `purpose` begins the message: "load of plain HTTP".
 */
export function notInstalled(name: string, purpose: string): (error: unknown) => never {
  return (error) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    const { optionalDependencies, peerDependencies } = MANIFEST;
    const version = optionalDependencies[name] ?? peerDependencies[name];
    const missing = isSingleBinary
      ? `${name}, which the single binary does not have: npm install sluice`
      : `a package that is not installed: npm install ${name}@${version}`;
    throw new NotInstalledError(`${purpose} needs ${missing}`, { cause: error });
  };
}
