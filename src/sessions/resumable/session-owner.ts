import { randomBytes } from "node:crypto";
import path from "node:path";
import type { ReplicaName } from "./replica-name.ts";

/** 6 bytes and the session's other 10: base64url of both together is that of each, one behind the other. */
const OWNER_BYTES = 6;
const REST_BYTES = 10;
const OWNER_CHARACTERS = 8;

/** Which other processes may own a session. */
export interface SessionOwnerOptions {
  /** Where the sockets of this machine's processes are; no other user may enter it. Absent: this process is the only one. */
  readonly socketFolder?: string | undefined;
  /** Absent: no other machine is part of the gateway. */
  readonly replica?: ReplicaName | undefined;
}

/** Where the owner of a session is. "nowhere": its name was not made by this gateway. */
export type SessionPlace =
  | { readonly at: "here" }
  | { readonly at: "sibling"; readonly socketPath: string }
  | { readonly at: "peer"; readonly replica: string }
  | { readonly at: "nowhere" };

/**
 * One process of a gateway, as the owner of resumable sessions. A session's name begins with its
 * owner's; neither is secret, the proof of a resumption is.
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

  /** Where the other processes of this machine ask it; undefined where there are none. */
  get socketPath(): string | undefined {
    return this.#folder && socketPathOf(this.#folder, this.#name);
  }

  /** A name for a session that it will hold: 16 bytes, base64url. */
  newSession(): string {
    return this.#replica?.newSession() ?? this.#name + randomBytes(REST_BYTES).toString("base64url");
  }

  /** Where the session's owner is asked. `session`: 22 characters of base64url. */
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
