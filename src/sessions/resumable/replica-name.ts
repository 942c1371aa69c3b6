import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

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
