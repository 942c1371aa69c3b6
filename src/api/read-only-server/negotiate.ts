import { notAcceptable } from "@sluice/client/internal/api/status";

/** A form of the answer other than plain JSON, as clients name it in Accept. */
export interface Representation {
  readonly as: string;
  readonly group: string;
  readonly version: string;
}

const JSON_TYPE = "application/json";

/**
 * Chooses the media type as kube-apiserver does: by quality, then by order; skips protobuf.
 * Undefined means plain JSON. Throws StatusError 406 if no JSON form is acceptable.
 */
export function negotiate(
  accept: string,
  offered: readonly Representation[] = [],
): Representation | undefined {
  if (accept.trim() === "") return undefined;
  for (const clause of clausesOf(accept)) {
    const isJson = clause.type === JSON_TYPE || clause.type === "*/*" || clause.type === "application/*";
    if (!isJson) continue;
    const as = clause.parameters.get("as");
    if (as === undefined) return undefined;
    const found = offered.find(
      (representation) =>
        representation.as === as &&
        representation.group === clause.parameters.get("g") &&
        representation.version === clause.parameters.get("v"),
    );
    if (found) return found;
  }
  throw notAcceptable([JSON_TYPE]);
}

interface Clause {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly quality: number;
}

function clausesOf(accept: string): Clause[] {
  return accept
    .split(",")
    .map(clauseOf)
    .filter(({ quality }) => quality > 0)
    .sort((left, right) => right.quality - left.quality);
}

function clauseOf(text: string): Clause {
  const [type = "", ...parts] = text.split(";").map((part) => part.trim());
  const parameters = new Map(
    parts.map((part) => {
      const [name = "", value = ""] = part.split("=", 2);
      return [name.trim().toLowerCase(), value.trim()];
    }),
  );
  const quality = Number(parameters.get("q") ?? 1);
  return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 1 : quality };
}
