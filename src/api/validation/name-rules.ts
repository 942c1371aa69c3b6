import { isIPv6 } from "node:net";

export const NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/**
 * Kubernetes' rules for names. Each function returns every applicable message, in the API server's
 * words; none for a valid name.
 */

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

const MAX_LABEL_CHARACTERS = 63;
const MAX_SUBDOMAIN_CHARACTERS = 253;
const MAX_PORT_NAME_CHARACTERS = 15;

const SUBDOMAIN_SENTENCE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const LABEL_SENTENCE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const LABEL_1035_SENTENCE =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const WILDCARD_SENTENCE =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
const LABEL_VALUE_SENTENCE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_PART_SENTENCE =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/** RFC 1123 subdomain: names of pods and nodes. */
export function subdomainProblems(value: string, unit?: "bytes"): string[] {
  return [
    ...lengthProblems(value, MAX_SUBDOMAIN_CHARACTERS, unit),
    ...patternProblems(value, SUBDOMAIN, SUBDOMAIN_SENTENCE, ["example.com"]),
  ];
}

/** RFC 1123 label: names of containers and namespaces. */
export function labelProblems(value: string): string[] {
  const tooLong = lengthProblems(value, MAX_LABEL_CHARACTERS);
  const hasOnlyDotsTooMany = !matches(value, LABEL) && matches(value, SUBDOMAIN);
  if (hasOnlyDotsTooMany) return [...tooLong, "must not contain dots"];
  return [...tooLong, ...patternProblems(value, LABEL, LABEL_SENTENCE, ["my-name", "123-abc"])];
}

/** RFC 1035 label: names of Services. */
export function serviceNameProblems(value: string): string[] {
  return [
    ...lengthProblems(value, MAX_LABEL_CHARACTERS),
    ...patternProblems(value, LABEL_1035, LABEL_1035_SENTENCE, ["my-name", "abc-123"]),
  ];
}

/** A host whose first label is a wildcard: `*.example.com`. */
export function wildcardSubdomainProblems(value: string): string[] {
  return [
    ...lengthProblems(value, MAX_SUBDOMAIN_CHARACTERS),
    ...patternProblems(value, `\\*\\.${SUBDOMAIN}`, WILDCARD_SENTENCE, ["*.example.com"]),
  ];
}

/** A name that only must be a valid path segment: RBAC objects may have colons and capitals. */
export function pathSegmentProblems(value: string): string[] {
  if (value === "." || value === "..") return [`may not be '${value}'`];
  return ["/", "%"].filter((part) => value.includes(part)).map((part) => `may not contain '${part}'`);
}

/** The value of a metadata label. */
export function labelValueProblems(value: string): string[] {
  return [
    ...lengthProblems(value, MAX_LABEL_CHARACTERS, "bytes"),
    ...patternProblems(value, LABEL_VALUE, LABEL_VALUE_SENTENCE, ["MyValue", "my_value", "12345"]),
  ];
}

/** The key of a label or annotation: `name` or `prefix.example.com/name`. */
export function qualifiedNameProblems(value: string): string[] {
  const examples = ["MyName", "my.name", "123-abc"];
  const parts = value.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2) {
    const example = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    const sentence = NAME_PART_SENTENCE.replace("name part", "a valid label key");
    return [patternSentence(sentence, QUALIFIED_NAME, examples) + example];
  }
  const prefix = parts.length === 2 ? (parts[0] ?? "") : undefined;
  return [
    ...(prefix === "" ? ["prefix part must be non-empty"] : []),
    ...(prefix ? subdomainProblems(prefix, "bytes").map((problem) => `prefix part ${problem}`) : []),
    ...(name === "" ? ["name part must be non-empty"] : []),
    ...lengthProblems(name, MAX_LABEL_CHARACTERS, "bytes").map((problem) => `name part ${problem}`),
    ...patternProblems(name, QUALIFIED_NAME, NAME_PART_SENTENCE, examples),
  ];
}

/** The name of a port (RFC 6335 service names). */
export function portNameProblems(value: string): string[] {
  const problems = lengthProblems(value, MAX_PORT_NAME_CHARACTERS);
  if (!/^[-a-z0-9]+$/.test(value)) {
    problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!/[a-z]/.test(value)) problems.push("must contain at least one letter (a-z)");
  if (value.includes("--")) problems.push("must not contain consecutive hyphens");
  if (value.startsWith("-") || value.endsWith("-")) problems.push("must not begin or end with a hyphen");
  return problems;
}

/** A key of a Secret's data. */
export function configKeyProblems(value: string): string[] {
  const sentence = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
  const isFolder = value === "." || value === "..";
  return [
    ...lengthProblems(value, MAX_SUBDOMAIN_CHARACTERS),
    ...patternProblems(value, "[-._a-zA-Z0-9]+", sentence, ["key.name", "KEY_NAME", "key-name"]),
    ...(isFolder ? [`must not be '${value}'`] : value.startsWith("..") ? ["must not start with '..'"] : []),
  ];
}

/** The name of a header that a probe sends. */
export function httpHeaderNameProblems(value: string): string[] {
  const sentence = "a valid HTTP header must consist of alphanumeric characters or '-'";
  return patternProblems(value, "[-A-Za-z0-9]+", sentence, ["X-Header-Name"]);
}

export function portNumberProblems(port: number): string[] {
  return port >= 1 && port <= 65_535 ? [] : ["must be between 1 and 65535, inclusive"];
}

/** Go counts bytes but calls them characters, except in labels. */
function lengthProblems(value: string, maxBytes: number, unit = "characters"): string[] {
  const bytes = new TextEncoder().encode(value).byteLength;
  return bytes > maxBytes ? [`must be no more than ${maxBytes} ${unit}`] : [];
}

function patternProblems(
  value: string,
  pattern: string,
  sentence: string,
  examples: readonly string[],
): string[] {
  return matches(value, pattern) ? [] : [patternSentence(sentence, pattern, examples)];
}

/** The two blanks before `or` are Kubernetes' own. */
function patternSentence(sentence: string, pattern: string, examples: readonly string[]): string {
  const quoted = examples.map((example) => `'${example}', `).join(" or ");
  return `${sentence} (e.g. ${quoted}regex used for validation is '${pattern}')`;
}

function matches(value: string, pattern: string): boolean {
  return new RegExp(`^(?:${pattern})$`).test(value);
}

/**
 * Kubernetes' lenient parser: IPv4 parts may have leading zeros (`010.0.0.1`); zones are refused.
 */
export function isLenientIP(value: string): boolean {
  if (value.includes(":")) return isIPv6(value) && !value.includes("%");
  const parts = value.split(".");
  return parts.length === 4 && parts.every((part) => /^\d{1,15}$/.test(part) && Number(part) <= 255);
}
