export interface Subject {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

/**
 * Common name and organizations of a certificate's subject as Node.js prints it: one `TYPE=value` per line, escaped by RFC
 * 2253. With several common names the last one counts, as in Go's x509, which Kubernetes reads them with.
 */
export function parseSubject(subject: string): Subject {
  const organizations: string[] = [];
  let commonName = "";
  for (const line of subject.split("\n")) {
    for (const [type, value] of attributesOf(line)) {
      if (type === "CN") commonName = value;
      if (type === "O") organizations.push(value);
    }
  }
  return { commonName, organizations };
}

/** A line holds several attributes, joined by ` + `, when the subject's relative name has more than one. */
function attributesOf(line: string): [type: string, value: string][] {
  return line.split(/(?<!\\) \+ (?=[A-Za-z0-9.]+=)/).flatMap((part): [string, string][] => {
    const at = part.indexOf("=");
    return at < 0 ? [] : [[part.slice(0, at), unescapeValue(part.slice(at + 1))]];
  });
}

/** `\2C` and `\,` are both a comma; bytes of one character may be escaped one by one, so they are put together as UTF-8. */
function unescapeValue(value: string): string {
  return value
    .replace(/(?:\\[0-9A-Fa-f]{2})+/g, (run) => Buffer.from(run.replaceAll("\\", ""), "hex").toString("utf8"))
    .replace(/\\([^0-9A-Fa-f])/g, "$1");
}
