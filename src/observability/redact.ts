/** Replaces secrets in logs. */
const REDACTED = "[redacted]";

/**
 * Field and header names, in lower case without separators, whose values are never logged at any
 * depth.
 */
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
  "sessiontoken",
  "securitytoken",
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

/** Secrets inside texts: error messages quote requests and URLs. */
const SECRET_TEXTS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\b(Bearer|Basic)\s+[^\s"',;]+/gi, `$1 ${REDACTED}`],
  // Browsers send a bearer token as a subprotocol.
  [/(base64url\.bearer\.authorization\.k8s\.io\.)[^\s"',;]+/gi, `$1${REDACTED}`],
  // Skips the scheme: a search that could start at every letter would take quadratic time.
  [/(:\/\/)[^/\s"']+@/g, `$1${REDACTED}@`],
  // Values in queries, forms and presigned URLs. A match starts only where a name does.
  [/(?<![\w-])([\w-]*(?:token|secret|password|signature|api[-_]?key)|command)=[^&\s"']*/gi, `$1=${REDACTED}`],
  // Values in JSON, also in JSON inside a JSON string.
  [
    /(["'][\w-]*(?:token|secret|password|api[-_]?key)\\?["']\s{0,8}:\s{0,8}\\?["'])[^"'\\]*/gi,
    `$1${REDACTED}`,
  ],
  // A JSON Web Token under any name.
  [/(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*/g, REDACTED],
  // A CRI streaming URL is a capability: its eight characters are enough to run the command.
  [/\/(exec|attach|portforward)\/[\w-]{8}(?![\w/-])/g, `/$1/${REDACTED}`],
];

const MAX_DEPTH = 6;
const MAX_ENTRIES = 100;
/**
 * Characters of a text that are searched for secrets: more than are logged, so that no secret is
 * cut in two. Past it the text is cut.
 */
const MAX_SEARCHED_CHARACTERS = 8 * 1024;
/**
 * Characters of a logged text: peers choose reasons, problems and names. Past it the text is cut,
 * with `...`.
 */
const MAX_LOGGED_CHARACTERS = 1024;
/** Characters of a logged stack. Past it the stack is cut. */
const MAX_LOGGED_STACK_CHARACTERS = 4 * 1024;
/**
 * Characters of a logged path, namespace, pod or container: clients choose their length. Past it
 * the value is cut, with `...`.
 */
const MAX_LOGGED_PATH_CHARACTERS = 256;
const PATH_NAMES = new Set(["path", "namespace", "pod", "container"]);

/**
 * A loggable copy of `fields`: replaces secrets, shows bytes as their count, and limits size and
 * depth.
 */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return redactObject(fields, 0);
}

export function redactText(text: string, maxCharacters = MAX_LOGGED_CHARACTERS): string {
  const searched = text.slice(0, MAX_SEARCHED_CHARACTERS);
  const redacted = SECRET_TEXTS.reduce(
    (result, [pattern, replacement]) => result.replace(pattern, replacement),
    // JSON escapes C0, but neither DEL nor C1.
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

/** A header list has names and values side by side, flat or in pairs. */
function redactList(list: readonly unknown[], depth: number): unknown[] {
  return list.slice(0, MAX_ENTRIES).map((item, index) => {
    const before = list[index - 1];
    return typeof before === "string" && isSecretName(before) ? REDACTED : redactValue(item, depth + 1);
  });
}

/**
 * Keeps only well-known parts: libraries attach requests, sockets and whole configurations to their
 * errors.
 */
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

/** Removes the message before the frames, so that it does not use up their space. */
function redactStack({ name, message, stack = "" }: Error): string {
  const headline = message === "" ? -1 : stack.indexOf(message);
  const frames = headline === -1 ? stack : stack.slice(headline + message.length);
  const first = headline === -1 ? "" : `${name}: ${redactText(message)}`;
  return first + redactText(frames, MAX_LOGGED_STACK_CHARACTERS);
}

function isSecretName(name: string): boolean {
  return SECRET_NAMES.has(name.toLowerCase().replaceAll(/[-_. ]/g, ""));
}
