export { ByteQueue } from "./byte-queue.ts";
export { ABORT, type AbortCode } from "./frames.ts";
export { ResumeSession, type ResumeSessionHandler } from "./session.ts";

/**
 * Both sides negotiate with this header, in requests and in 101 responses. Its values are secret,
 * so it is never logged.
 */
export const RESUME_HEADER = "Sluice-Resume";
/**
 * The subprotocol of a WebSocket that carries resume frames. A new session offers it after its own
 * subprotocol, so a server that does not know it picks the other. A resumption offers it alone, so
 * such a server refuses.
 */
export const RESUME_PROTOCOL = "v1.resume.sluice.dev";

const VERSION = "v1";
/**
 * Characters of a `Sluice-Resume` value, which has at most 8 parameters; our own values stay below
 * 200. Past it the header is not an offer.
 */
const MAX_VALUE_CHARACTERS = 512;
const MAX_PARAMETERS = 8;

/** A client's offer to make its session resumable. */
export interface Offer {
  /** The window that the client can buffer, in each direction. */
  readonly windowBytes: number;
}

/** The response of a server that agrees. */
export interface Agreement {
  /** The subprotocol inside the frames: the one that the server would have chosen without resumption. */
  readonly protocol: string;
  /** Names the session: 16 random bytes, base64url. Not a secret. */
  readonly session: string;
  /** Signs proofs: 32 random bytes, base64url. It is sent only here. */
  readonly key: string;
  /** The most unacknowledged bytes in flight, in either direction. */
  readonly windowBytes: number;
  /** How long a detached session waits for its next connection, in seconds. */
  readonly windowSeconds: number;
}

/** A client returns to its session. */
export interface Resumption {
  readonly session: string;
  /** Rises with every attempt: a proof is valid for one attempt. */
  readonly attempt: number;
  /** The next offset that the client expects. */
  readonly received: number;
  /** HMAC-SHA256 of `proofTextOf` with the key, base64url. */
  readonly proof: string;
}

export function encodeOffer({ windowBytes }: Offer): string {
  return `${VERSION}; window-bytes=${windowBytes}`;
}

export function encodeAgreement(agreement: Agreement): string {
  const { protocol, session, key, windowBytes, windowSeconds } = agreement;
  const window = `window-bytes=${windowBytes}; window-seconds=${windowSeconds}`;
  return `${VERSION}; protocol=${protocol}; session=${session}; key=${key}; ${window}`;
}

export function encodeResumption({ session, attempt, received, proof }: Resumption): string {
  return `${VERSION}; session=${session}; attempt=${attempt}; received=${received}; proof=${proof}`;
}

export function encodeResumed(received: number): string {
  return `${VERSION}; received=${received}`;
}

/** The signed text: every value that the server acts on. */
export function proofTextOf({ session, attempt, received }: Omit<Resumption, "proof">): string {
  return `sluice-resume ${VERSION}\n${session}\n${attempt}\n${received}\n`;
}

/** Parses a request's header; undefined if it is neither an offer nor a resumption. */
export function parseRequest(
  value: string,
): ({ readonly type: "offer" } & Offer) | ({ readonly type: "resumption" } & Resumption) | undefined {
  const parameters = parametersOf(value);
  const windowBytes = numberOf(parameters?.get("window-bytes"));
  if (windowBytes !== undefined) return { type: "offer", windowBytes };
  const session = bytesOf(parameters?.get("session"), SESSION_CHARACTERS);
  const attempt = numberOf(parameters?.get("attempt"));
  const received = numberOf(parameters?.get("received"));
  const proof = bytesOf(parameters?.get("proof"), KEY_CHARACTERS);
  if (session === undefined || attempt === undefined || received === undefined || proof === undefined) {
    return undefined;
  }
  return { type: "resumption", session, attempt, received, proof };
}

export function parseAgreement(value: string): Agreement | undefined {
  const parameters = parametersOf(value);
  const protocol = parameters?.get("protocol");
  const session = bytesOf(parameters?.get("session"), SESSION_CHARACTERS);
  const key = bytesOf(parameters?.get("key"), KEY_CHARACTERS);
  const windowBytes = numberOf(parameters?.get("window-bytes"));
  const windowSeconds = numberOf(parameters?.get("window-seconds"));
  if (protocol === undefined || session === undefined || key === undefined) return undefined;
  if (windowBytes === undefined || windowSeconds === undefined) return undefined;
  return { protocol, session, key, windowBytes, windowSeconds };
}

/** The server's `received`, from the response to a resumption. */
export function parseResumed(value: string): number | undefined {
  return numberOf(parametersOf(value)?.get("received"));
}

/** 16 and 32 bytes in base64url without padding. */
const SESSION_CHARACTERS = 22;
const KEY_CHARACTERS = 43;

function bytesOf(text: string | undefined, characters: number): string | undefined {
  return text?.length === characters && /^[\w-]+$/.test(text) ? text : undefined;
}

function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^(?:0|[1-9]\d{0,15})$/.test(text)) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : undefined;
}

/**
 * Parses `v1; name=value; ...`; undefined for anything else and for a repeated name. Unknown names
 * are reserved for later versions.
 */
function parametersOf(value: string): ReadonlyMap<string, string> | undefined {
  if (value.length > MAX_VALUE_CHARACTERS) return undefined;
  const [version, ...items] = value.split(";").map((item) => item.trim());
  if (version !== VERSION || items.length > MAX_PARAMETERS) return undefined;
  const parameters = new Map<string, string>();
  for (const item of items) {
    const at = item.indexOf("=");
    const name = item.slice(0, at);
    if (at < 1 || parameters.has(name)) return undefined;
    parameters.set(name, item.slice(at + 1));
  }
  return parameters;
}
