/**
 * Plain words of a manifest, and how kubectl (sigs.k8s.io/yaml) reads each; test/real compares with
 * kubectl itself.
 */
export const MANIFEST_WORDS: readonly (readonly [string, unknown])[] = [
  ["0120", 80],
  ["-0120", -80],
  ["08", 8],
  ["0o17", 15],
  ["0x_F", 15],
  ["-0x1f", -31],
  ["1_0", 10],
  ["0_", 0],
  ["_1", "_1"],
  ["0b101", 5],
  ["-0b11", -3],
  ["0b12", "0b12"],
  ["-0", 0],
  ["+1", 1],
  ["y", true],
  ["Yes", true],
  ["on", true],
  ["TRUE", true],
  ["N", false],
  ["no", false],
  ["OFF", false],
  ["yEs", "yEs"],
  ["~", null],
  ["Null", null],
  ["nil", "nil"],
  ["1:30", "1:30"],
  ["190:20:30.15", "190:20:30.15"],
  ["2001-01-02", "2001-01-02"],
  ["2001-01-02T03:04:05Z", "2001-01-02T03:04:05Z"],
  [".5", 0.5],
  [".5_0", 0.5],
  ["._5", "._5"],
  [".", "."],
  ["+.5", 0.5],
  ["5_0.5", 50.5],
  ["1.", 1],
  ["1e3", 1000],
  ["12e03", 12000],
  ["1e400", "1e400"],
  ["1.2.3", "1.2.3"],
  ["100m", "100m"],
  ["1Gi", "1Gi"],
  ["=", "="],
  ["18446744073709551615", 2 ** 64],
  ["18446744073709551616", 2 ** 64],
  ['"0120"', "0120"],
  ["'yes'", "yes"],
  ['!!int "0120"', 80],
  ["!!float 1", 1],
  ["!!str 012", "012"],
  ["!!timestamp 2001-01-02", "2001-01-02"],
  ["!!binary aGk=", "hi"],
];

/** Keys are resolved like values, and then written as text. */
export const MANIFEST_KEYS: readonly (readonly [string, string])[] = [
  ["on", "true"],
  ["n", "false"],
  ["010", "8"],
  ["1.5", "1.5"],
  ["1_000", "1000"],
  ['"yes"', "yes"],
];

/** An object with these words as a list and as keys; kubectl reads it without a server. */
export function manifestOf(words: readonly string[], keys: readonly string[]): string {
  const head = "apiVersion: v1\nkind: Words\nmetadata: { name: words }\nvalues:\n";
  return `${head}${words.map((word) => `- ${word}\n`).join("")}keys:\n${keys.map((key) => `  ${key}: x\n`).join("")}`;
}
