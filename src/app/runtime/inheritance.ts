import { ConfigurationError } from "../../config/configuration-error.ts";
import { type InheritedSocket, ListeningSockets } from "../../net/listening-sockets.ts";
import { Lineage } from "./lineage.ts";

/** Behind standard input, output and error: sd_listen_fds(3)'s SD_LISTEN_FDS_START. */
export const FIRST_DESCRIPTOR = 3;

/** The variable in which a program finds what its predecessor leaves to it, as JSON. */
export const SUCCESSION_VARIABLE = "SLUICE_SUCCESSION";

/** Another version of it is not understood: the start fails, and the predecessor serves on. */
export const SUCCESSION_VERSION = 1;

export interface Succession {
  readonly version: typeof SUCCESSION_VERSION;
  /** In the order of their descriptors. */
  readonly sockets: readonly (Pick<InheritedSocket, "configured"> & { readonly name: string })[];
  readonly replicaId: string;
  readonly socketFolder?: string | undefined;
}

export interface Inheritance {
  readonly lineage: Lineage;
  /** There is a process that ends when this one serves. */
  readonly hasPredecessor: boolean;
  /** Sockets of a service manager that are not for this process. */
  readonly problem?: string | undefined;
}

/**
 * What this process was started with: sockets of its predecessor or of a service manager.
 * Removes it from `environment`, for it is not for children. Throws ConfigurationError.
 */
export function inherit(
  environment: NodeJS.ProcessEnv,
  configured: readonly string[],
  pid: number = process.pid,
): Inheritance {
  const {
    [SUCCESSION_VARIABLE]: succession,
    LISTEN_FDS: count,
    LISTEN_PID: owner,
    LISTEN_FDNAMES: names,
  } = environment;
  for (const name of [SUCCESSION_VARIABLE, "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"])
    delete environment[name];
  if (succession !== undefined) return { lineage: succeed(succession), hasPredecessor: true };
  if (count === undefined) return { lineage: new Lineage(), hasPredecessor: false };
  if (owner !== String(pid)) {
    const problem = `LISTEN_PID is ${JSON.stringify(owner)}, and this process is ${pid}: its sockets are not taken`;
    return { lineage: new Lineage(), hasPredecessor: false, problem };
  }
  const sockets = activated(count, names ?? "", configured);
  return { lineage: new Lineage(new ListeningSockets(sockets)), hasPredecessor: false };
}

/** By listener: each socket is named (FileDescriptorName=) as the configuration names its listener. */
function activated(
  count: string,
  names: string,
  configured: readonly string[],
): ReadonlyMap<string, InheritedSocket> {
  const named = names.split(":");
  if (String(named.length) !== count) {
    throw wrong("LISTEN_FDNAMES", `has ${named.length} names, and LISTEN_FDS is ${JSON.stringify(count)}`);
  }
  const sockets = new Map<string, InheritedSocket>();
  for (const [index, name] of named.entries()) {
    if (!configured.includes(name)) {
      const expected = `FileDescriptorName= must be one of ${configured.join(", ")}`;
      throw wrong("LISTEN_FDNAMES", `${JSON.stringify(name)} is no configured listener: ${expected}`);
    }
    if (sockets.has(name)) throw wrong("LISTEN_FDNAMES", `two sockets are named ${JSON.stringify(name)}`);
    sockets.set(name, { descriptor: FIRST_DESCRIPTOR + index });
  }
  return sockets;
}

function succeed(text: string): Lineage {
  const { version, sockets, replicaId, socketFolder } = JSON.parse(text) as Succession;
  if (version !== SUCCESSION_VERSION) {
    throw wrong(
      SUCCESSION_VARIABLE,
      `is of version ${version}, and this program knows ${SUCCESSION_VERSION}`,
    );
  }
  const inherited = sockets.map(
    ({ name, configured }, index) => [name, { descriptor: FIRST_DESCRIPTOR + index, configured }] as const,
  );
  return new Lineage(new ListeningSockets(new Map(inherited)), { replicaId, socketFolder });
}

function wrong(source: string, message: string): ConfigurationError {
  return new ConfigurationError([{ source, line: 0, column: 0, path: "", message }]);
}
