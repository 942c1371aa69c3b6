import { type ScalarTag, stringify } from "yaml";

const WORDS: ReadonlyMap<string, boolean | null | number> = new Map<string, boolean | null | number>([
  ...["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"].map(
    (word) => [word, true] as const,
  ),
  ...["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"].map(
    (word) => [word, false] as const,
  ),
  ...["", "~", "null", "Null", "NULL"].map((word) => [word, null] as const),
  ...[".nan", ".NaN", ".NAN"].map((word) => [word, Number.NaN] as const),
  ...[".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"].map((word) => [word, Infinity] as const),
  ...["-.inf", "-.Inf", "-.INF"].map((word) => [word, -Infinity] as const),
]);

const DECIMAL_INTEGER = /^[-+]?(?:0|[1-9][0-9]*)$/;
/** The prefixes that Go's ParseInt accepts with base 0. */
const PREFIXED_INTEGER = /^([-+]?)0(?:([xX])([0-9a-fA-F]+)|([bB])([01]+)|[oO]?([0-7]+))$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
/** In a word that begins with a dot, Go's ParseFloat accepts underscores only between digits. */
const DOT_FLOAT = /^\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?$/;

const MIN_INTEGER = -(2n ** 63n);
const MAX_INTEGER = 2n ** 64n - 1n;

/**
 * A plain word's value in a Kubernetes manifest, as in sigs.k8s.io/yaml: YAML 1.1 with Go's
 * integers; sexagesimal numbers and timestamps stay strings.
 */
function kubernetesScalar(text: string): string | number | boolean | null {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (text.startsWith(".")) return DOT_FLOAT.test(text) ? finite(text.replaceAll("_", ""), text) : text;
  if (!/^[-+0-9]/.test(text)) return text;
  const plain = text.replaceAll("_", "");
  return integerOf(plain) ?? (FLOAT.test(plain) ? finite(plain, text) : text);
}

function integerOf(plain: string): number | undefined {
  const prefixed = PREFIXED_INTEGER.exec(plain);
  if (prefixed === null && !DECIMAL_INTEGER.test(plain)) return undefined;
  let value: bigint;
  if (prefixed === null) {
    value = BigInt(plain.replace("+", ""));
  } else {
    const [, sign, hex, hexDigits, binary, bits, octal] = prefixed;
    const magnitude = BigInt(hex ? `0x${hexDigits}` : binary ? `0b${bits}` : `0o${octal}`);
    value = sign === "-" ? -magnitude : magnitude;
  }
  // Go tries ParseUint for values beyond int64, and that accepts no sign.
  const isHeld = value >= MIN_INTEGER && (plain.startsWith("+") ? value < 2n ** 63n : value <= MAX_INTEGER);
  return isHeld ? Number(value) : undefined;
}

/** A number beyond float64 stays a string. */
function finite(plain: string, text: string): string | number {
  const value = Number(plain);
  return Number.isFinite(value) ? value : text;
}

type Value = ReturnType<typeof kubernetesScalar>;

/** `isOf` checks a value with an explicit tag; the first tag also resolves plain words. */
function tag(name: string, isOf: (value: Value) => boolean, isDefault = false): ScalarTag {
  return {
    tag: `tag:yaml.org,2002:${name}`,
    ...(isDefault ? { default: true, test: /^(?!<<$)/ } : { default: false as const }),
    resolve(text, onError) {
      const value = kubernetesScalar(text);
      if (!isOf(value)) onError(`cannot decode ${JSON.stringify(text.slice(0, 64))} as a !!${name}`);
      return value;
    },
  };
}

/** Tags for the YAML library's `failsafe` schema, in which every word is a string. */
export const KUBERNETES_TAGS: readonly ScalarTag[] = [
  tag("int", (value) => Number.isInteger(value)),
  tag("float", (value) => typeof value === "number"),
  tag("bool", (value) => typeof value === "boolean"),
  tag("null", (value) => value === null),
  {
    tag: "tag:yaml.org,2002:timestamp",
    default: false,
    resolve: (text) => text,
  },
  {
    tag: "tag:yaml.org,2002:binary",
    default: false,
    resolve: (text) => Buffer.from(text, "base64").toString(),
  },
  // Resolves plain words only: no file names this tag.
  { ...tag("kubernetes", () => true, true) },
];

/** A value as YAML that version 1.1 reads the same. Leaves out undefined fields, as JSON does. */
export function yamlOf(value: unknown): string {
  const plain: unknown = JSON.parse(JSON.stringify(value));
  return stringify(plain, { version: "1.1", lineWidth: 0 });
}
