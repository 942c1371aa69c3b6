import { randomBytes } from "node:crypto";
import path from "node:path";

/** 6 bytes and the session's other 10: base64url of both together is that of each, one behind the other. */
const HOLDER_BYTES = 6;
const REST_BYTES = 10;
const HOLDER_CHARACTERS = 8;

/**
 * One process of a gateway, as the owner of resumable sessions. A session's name begins with its
 * owner's; neither is secret, the proof of a resumption is.
 */
export class SessionOwner {
  readonly #name = randomBytes(HOLDER_BYTES).toString("base64url");
  readonly #folder: string;

  /** `folder`: where the owners' sockets are; no other user may enter it. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Where it is asked by the others. */
  get socketPath(): string {
    return this.#socketPathOf(this.#name);
  }

  /** A name for a session that it will hold: 16 bytes, base64url. */
  newSession(): string {
    return this.#name + randomBytes(REST_BYTES).toString("base64url");
  }

  /** Where the session's holder is asked; undefined where that is this one. `session`: 22 characters of base64url. */
  otherSocketPathOf(session: string): string | undefined {
    const holder = session.slice(0, HOLDER_CHARACTERS);
    return holder === this.#name ? undefined : this.#socketPathOf(holder);
  }

  #socketPathOf(holder: string): string {
    return path.join(this.#folder, `${holder}.resume`);
  }
}
