/** Takes the place of everything that must never be written to a log. */
export const REDACTED = "[redacted]";

/** Field and header names, in lower case without separators, whose values are never logged, at whatever depth. */
const SECRET_NAMES = new Set([
  "authorization",
  "proxyauthorization",
  "cookie",
  "setcookie",
  "secwebsocketprotocol",
  "sluiceresume",
  "wwwauthenticate",
  "token",
  "accesstoken",
  "bearertoken",
  "idtoken",
  "refreshtoken",
  "password",
  "secret",
  "clientsecret",
  "apikey",
  "key",
  "privatekey",
  "clientkey",
  "tlskey",
  "clientkeydata",
  "command",
  "payload",
  "body",
  "stdin",
  "stdout",
  "stderr",
  "streamingurl",
  "criurl",
]);

/** Secrets inside of texts: error messages quote requests and URLs. */
const SECRET_TEXTS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\b(Bearer|Basic)\s+[^\s"',;]+/gi, `$1 ${REDACTED}`],
  // The browser's way to send a bearer token: as a subprotocol.
  [/(base64url\.bearer\.authorization\.k8s\.io\.)[^\s"',;]+/gi, `$1${REDACTED}`],
  // Not the scheme: a search that could start at every letter takes quadratic time.
  [/(:\/\/)[^/\s"']+@/g, `$1${REDACTED}@`],
  [/\b(access_token|id_token|token|password|command)=[^&\s"']*/gi, `$1=${REDACTED}`],
  // A CRI streaming URL is a capability: its eight characters are all that is needed to run the
  // command.
  [/\/(exec|attach|portforward)\/[\w-]{8}(?![\w/-])/g, `/$1/${REDACTED}`],
];

const MAX_DEPTH = 6;
const MAX_ENTRIES = 100;
/** What is searched for secrets of one text. More than is written, so that no secret is cut in two before it is found. */
const MAX_SEARCHED_CHARACTERS = 8 * 1024;
/** What is written of one text: peers choose reasons, problems and names. */
const MAX_LOGGED_CHARACTERS = 1024;
const MAX_LOGGED_STACK_CHARACTERS = 4 * 1024;
/** What is written of a request's path and of the names in it, whose length strangers choose. */
const MAX_LOGGED_PATH_CHARACTERS = 256;
const PATH_NAMES = new Set(["path", "namespace", "pod", "container"]);

/** A copy of `fields` that may be logged: secrets replaced, bytes counted instead of shown, size and depth bounded. */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return redactObject(fields, 0);
}

export function redactText(text: string, maxCharacters = MAX_LOGGED_CHARACTERS): string {
  const searched = text.slice(0, MAX_SEARCHED_CHARACTERS);
  const redacted = SECRET_TEXTS.reduce(
    (result, [pattern, replacement]) => result.replace(pattern, replacement),
    // JSON escapes C0, and neither DEL nor C1.
    searched.replace(/[\x7f-\x9f]/g, "\u{fffd}"),
  );
  return redacted.length > maxCharacters || searched.length < text.length
    ? `${redacted.slice(0, maxCharacters)}...`
    : redacted;
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") {
    return redactText(value);
  }
  if (typeof value === "bigint") {
    return value.toString();
  }
  if (typeof value !== "object" || value === null) {
    return typeof value === "function" || typeof value === "symbol" ? undefined : value;
  }
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? null : value.toISOString();
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return `[${value.byteLength} bytes]`;
  }
  if (depth >= MAX_DEPTH) {
    return "[too deep]";
  }
  if (value instanceof Error) {
    return redactError(value, depth);
  }
  return Array.isArray(value) ? redactList(value, depth) : redactObject(value, depth);
}

function redactObject(object: object, depth: number): Record<string, unknown> {
  const entries = Object.entries(object).slice(0, MAX_ENTRIES);
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name,
      isSecretName(name)
        ? REDACTED
        : typeof value === "string" && PATH_NAMES.has(name)
          ? redactText(value, MAX_LOGGED_PATH_CHARACTERS)
          : redactValue(value, depth + 1),
    ]),
  );
}

/** A header list holds names and values as neighbours, flat or in pairs. */
function redactList(list: readonly unknown[], depth: number): unknown[] {
  return list.slice(0, MAX_ENTRIES).map((item, index) => {
    const before = list[index - 1];
    return typeof before === "string" && isSecretName(before) ? REDACTED : redactValue(item, depth + 1);
  });
}

/** Only the well-known parts: libraries hang requests, sockets and whole configurations on their errors. */
function redactError(error: Error, depth: number): Record<string, unknown> {
  const code: unknown = "code" in error ? error.code : undefined;
  return {
    name: error.name,
    message: redactText(error.message),
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: redactStack(error) }),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, depth + 1) }),
  };
}

/** The message stands in front of the frames, and must not take their place. */
function redactStack({ name, message, stack = "" }: Error): string {
  const headline = message === "" ? -1 : stack.indexOf(message);
  const frames = headline === -1 ? stack : stack.slice(headline + message.length);
  const first = headline === -1 ? "" : `${name}: ${redactText(message)}`;
  return first + redactText(frames, MAX_LOGGED_STACK_CHARACTERS);
}

function isSecretName(name: string): boolean {
  return SECRET_NAMES.has(name.toLowerCase().replaceAll(/[-_. ]/g, ""));
}
