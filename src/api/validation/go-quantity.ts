const FORM = /^[+-]?\d*(?:\.\d*)?(?<suffix>[eEinumkKMGTP]+(?:[-+]\d*|\d*)|[-+]\d*|)$/;
const SUFFIX = /^(?:[numkMGTPE]?|[KMGTPE]i|[eE][-+]?\d+)$/;

/** Why Go's Quantity (apimachinery, pkg/api/resource) refuses a JSON value, in its words; absent when it does not. */
export function goQuantityProblem(value: unknown): string | undefined {
  const text = typeof value === "string" ? value.trim() : JSON.stringify(value);
  const suffix = text === "" ? undefined : FORM.exec(text)?.groups?.suffix;
  if (suffix === undefined) {
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  }
  return SUFFIX.test(suffix) ? undefined : "unable to parse quantity's suffix";
}
