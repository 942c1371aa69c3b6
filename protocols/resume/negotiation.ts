/** The header that both sides negotiate with, in requests and in their 101. Its values hold secrets: it is never logged. */
export const RESUME_HEADER = "Sluice-Resume";
/**
 * The subprotocol of a WebSocket that carries resume frames. It is offered behind the session's own, so that a server that does not know
 * it takes the other; and it is the only one offered when a session is resumed, so that such a server refuses.
 */
export const RESUME_PROTOCOL = "v1.resume.sluice.dev";

const VERSION = "v1";
/** The longest value of ours is below 200 characters. */
const MAX_VALUE_CHARACTERS = 512;
const MAX_PARAMETERS = 8;

/** A client would like its session to be resumable. */
export interface Offer {
  /** The window that it has memory for, in each direction. */
  readonly windowBytes: number;
}

/** What a server answers that agrees. */
export interface Agreement {
  /** The subprotocol that the bytes inside speak, as it would have been chosen without us. */
  readonly protocol: string;
  /** Names the session: 16 random bytes, base64url. No secret. */
  readonly session: string;
  /** Makes proofs: 32 random bytes, base64url. It travels this once. */
  readonly key: string;
  /** What may be on its way unacknowledged, in either direction. */
  readonly windowBytes: number;
  /** How long a session waits for its next connection, in seconds. */
  readonly windowSeconds: number;
}

/** A client returns to its session. */
export interface Resumption {
  readonly session: string;
  /** Rises with every try: a proof is good for one try. */
  readonly attempt: number;
  /** The next number that the client expects. */
  readonly received: number;
  /** HMAC-SHA256 of `proofTextOf` by the key, base64url. */
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

/** What is signed: everything that the server acts on. */
export function proofTextOf({ session, attempt, received }: Omit<Resumption, "proof">): string {
  return `sluice-resume ${VERSION}\n${session}\n${attempt}\n${received}\n`;
}

/** A request's value; undefined where it is neither an offer nor a resumption. */
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

/** What the server has received, from the answer to a resumption. */
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

/** `v1; name=value; ...`; undefined for anything else, and for a name that comes twice. Unknown names are for later versions. */
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
