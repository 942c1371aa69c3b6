import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import path from "node:path";
import type { DialOptions } from "@sluice/client/internal/net/dial";
import type { ReplicaName } from "./replica-name.ts";

/**
 * A name is 6 bytes of owner and 10 of session. Base64url encodes 6 bytes as 8 characters, so the two
 * parts can be encoded separately.
 */
const OWNER_BYTES = 6;
const REST_BYTES = 10;
const OWNER_CHARACTERS = 8;

/** Which other processes may own sessions. */
interface SessionOwnerOptions {
  /**
   * The folder of this machine's process sockets, which no other user may enter. Absent: this process is
   * the only one.
   */
  readonly socketFolder?: string | undefined;
  /** Absent: the gateway has no other replicas. */
  readonly replica?: ReplicaName | undefined;
}

/** Where a session's owner runs. "nowhere": this gateway did not make the name. */
type SessionPlace =
  | { readonly at: "here" }
  | { readonly at: "sibling"; readonly socketPath: string }
  | { readonly at: "peer"; readonly replica: string }
  | { readonly at: "nowhere" };

/**
 * One process of a gateway, as an owner of resumable sessions. A session's name begins with its
 * owner's name. Neither is secret; the proof of a resumption is.
 */
export class SessionOwner {
  readonly #name: string;
  readonly #folder: string | undefined;
  readonly #replica: ReplicaName | undefined;

  constructor({ socketFolder, replica }: SessionOwnerOptions) {
    this.#folder = socketFolder;
    this.#replica = replica;
    this.#name = replica?.process ?? randomBytes(OWNER_BYTES).toString("base64url");
  }

  /** The socket on which other processes of this machine reach it; undefined if there are none. */
  get socketPath(): string | undefined {
    return this.#folder && socketPathOf(this.#folder, this.#name);
  }

  /** A name for a new session of this process: 16 bytes, base64url. */
  newSession(): string {
    return this.#replica?.newSession() ?? this.#name + randomBytes(REST_BYTES).toString("base64url");
  }

  /** Where to find the session's owner. `session`: 22 characters of base64url. */
  placeOf(session: string): SessionPlace {
    const replica = this.#replica;
    let owner = session.slice(0, OWNER_CHARACTERS);
    if (replica !== undefined) {
      const read = replica.read(session);
      if (read === undefined) return { at: "nowhere" };
      if (read.replica !== replica.id) return { at: "peer", replica: read.replica };
      owner = read.process;
    }
    if (owner === this.#name) return { at: "here" };
    if (this.#folder === undefined) return { at: "nowhere" };
    return { at: "sibling", socketPath: socketPathOf(this.#folder, owner) };
  }
}

function socketPathOf(folder: string, owner: string): string {
  return path.join(folder, `${owner}.resume`);
}

/** How to reach another process, which owns a session. */
export interface OwnerConnection {
  /** As `dial`. Rejects with OwnerGoneError, ENOENT or ECONNREFUSED if the process no longer exists. */
  connect(options: DialOptions): Promise<Socket>;
  /** The response timeout, in milliseconds. */
  readonly responseMs: number;
}

/** The gateway no longer has a process of this name. */
export class OwnerGoneError extends Error {}

/** Connects to a process on this machine. */
export function atSocket(socketPath: string, responseMs: number): OwnerConnection {
  return { connect: () => connectTo(socketPath), responseMs };
}

/** Rejects with the system's error. */
function connectTo(socketPath: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: socketPath, allowHalfOpen: true });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject).on("error", () => {});
      resolve(socket);
    });
  });
}
