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
  [/([a-z][a-z0-9+.-]*:\/\/)[^/\s"'@]+@/gi, `$1${REDACTED}@`],
  [/\b(access_token|id_token|token|password|command)=[^&\s"']*/gi, `$1=${REDACTED}`],
  // A CRI streaming URL is a capability: its eight characters are all that is needed to run the
  // command.
  [/\/(exec|attach|portforward)\/[\w-]{8}(?![\w/-])/g, `/$1/${REDACTED}`],
];

const MAX_DEPTH = 6;
const MAX_ENTRIES = 100;
const MAX_TEXT_CHARACTERS = 8 * 1024;

/** A copy of `fields` that may be logged: secrets replaced, bytes counted instead of shown, size and depth bounded. */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return redactObject(fields, 0);
}

export function redactText(text: string): string {
  const cut = text.length > MAX_TEXT_CHARACTERS ? `${text.slice(0, MAX_TEXT_CHARACTERS)}...` : text;
  return SECRET_TEXTS.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), cut);
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
    entries.map(([name, value]) => [name, isSecretName(name) ? REDACTED : redactValue(value, depth + 1)]),
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
    ...(error.stack === undefined ? {} : { stack: redactText(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, depth + 1) }),
  };
}

function isSecretName(name: string): boolean {
  return SECRET_NAMES.has(name.toLowerCase().replaceAll(/[-_. ]/g, ""));
}
