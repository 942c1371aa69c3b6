import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import path from "node:path";
import type { DialOptions } from "@sluice/client/internal/net/dial";

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

/** A session's name has 16 bytes: replica 4, process 3, number 4, MAC 5. */
const REPLICA_BYTES = 4;
const PROCESS_BYTES = 3;
const NUMBER_BYTES = 4;
const SIGNED_BYTES: number = REPLICA_BYTES + PROCESS_BYTES + NUMBER_BYTES;
const NAME_BYTES = 16;
/** The session number wraps here; until then every name is unique. */
const NUMBERS = 2 ** 32;

/** The owner that a session's name encodes. */
interface NamedOwner {
  readonly replica: string;
  readonly process: string;
}

/** Keys that all replicas share. The first one signs. */
export interface SessionKeys {
  readonly current: readonly [Buffer, ...Buffer[]];
}

/**
 * Names sessions after one process of one replica. All replicas share the signing keys, so they never
 * dial for a name that a client made up. No name contains an address.
 */
export class ReplicaName {
  readonly id: string;
  readonly process: string = randomBytes(PROCESS_BYTES).toString("base64url");
  readonly #keys: SessionKeys;
  #number: number = randomBytes(NUMBER_BYTES).readUInt32BE();

  /** `id`: from `newReplicaId`, the same for all processes of the replica. `keys` may be replaced. */
  constructor(id: string, keys: SessionKeys) {
    this.id = id;
    this.#keys = keys;
  }

  newSession(): string {
    const name = Buffer.alloc(NAME_BYTES);
    name.write(this.id, 0, "hex");
    name.write(this.process, REPLICA_BYTES, "base64url");
    name.writeUInt32BE(this.#number, REPLICA_BYTES + PROCESS_BYTES);
    this.#number = (this.#number + 1) % NUMBERS;
    macOf(name.subarray(0, SIGNED_BYTES), this.#keys.current[0]).copy(name, SIGNED_BYTES);
    return name.toString("base64url");
  }

  /** Undefined if none of the keys signed the name. */
  read(session: string): NamedOwner | undefined {
    const name = Buffer.from(session, "base64url");
    if (name.byteLength !== NAME_BYTES) return undefined;
    const signed = name.subarray(0, SIGNED_BYTES);
    const mac = name.subarray(SIGNED_BYTES);
    if (!this.#keys.current.some((key) => timingSafeEqual(macOf(signed, key), mac))) return undefined;
    return {
      replica: name.toString("hex", 0, REPLICA_BYTES),
      process: name.toString("base64url", REPLICA_BYTES, REPLICA_BYTES + PROCESS_BYTES),
    };
  }
}

function macOf(signed: Uint8Array, key: Buffer): Buffer {
  const mac = createHmac("sha256", key).update("sluice session name v1\n").update(signed).digest();
  return mac.subarray(0, NAME_BYTES - SIGNED_BYTES);
}
