const FORM = /^[+-]?\d*(?:\.\d*)?(?<suffix>[eEinumkKMGTP]+(?:[-+]\d*|\d*)|[-+]\d*|)$/;
const SUFFIX = /^(?:[numkMGTPE]?|[KMGTPE]i|[eE][-+]?\d+)$/;

/**
 * The error of Go's Quantity (apimachinery, pkg/api/resource) for a JSON value; undefined if it is
 * valid.
 */
export function goQuantityProblem(value: unknown): string | undefined {
  const text = typeof value === "string" ? value.trim() : JSON.stringify(value);
  const suffix = text === "" ? undefined : FORM.exec(text)?.groups?.suffix;
  if (suffix === undefined) {
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  }
  return SUFFIX.test(suffix) ? undefined : "unable to parse quantity's suffix";
}
