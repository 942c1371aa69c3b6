import { KUBERNETES_TYPES } from "./kubernetes-types.ts";
import type { Shape } from "./shape.ts";

type StructShape = Extract<Shape, { json: "struct" }>;

/** Types by their Go names: a struct's fields, or another type's definition. */
interface TypeTexts {
  readonly structs: ReadonlyMap<string, string>;
  readonly others: ReadonlyMap<string, string>;
}

/** Parsed on first use, because a serving gateway never needs it. */
let texts: TypeTexts | undefined;
const shapes = new Map<string, Shape>();

/**
 * Every field of a kind as the API server decodes it: `kindShape("networking.k8s.io/v1",
 * "Ingress")`.
 */
export function kindShape(apiVersion: string, kind: string): Shape {
  return shapeOf(`${apiVersion.slice(apiVersion.indexOf("/") + 1)}.${kind}`);
}

function shapeOf(go: string): Shape {
  const known = shapes.get(go);
  if (known !== undefined) return known;
  texts ??= readTypes();
  const fields = texts.structs.get(go);
  const shape = fields === undefined ? plainShape(texts.others.get(go) ?? go, go) : structShape(go, fields);
  shapes.set(go, shape);
  return shape;
}

function plainShape(text: string, go: string): Shape {
  if (text === "[]uint8") return { json: "bytes", go: "[]uint8" };
  if (text.startsWith("[]")) return { json: "array", go, items: shapeOf(text.slice(2)) };
  if (text.startsWith("map[")) return { json: "map", go, values: shapeOf(text.slice(text.indexOf("]") + 1)) };
  switch (text) {
    case "string":
    case "bool":
      return { json: text, go };
    case "int32":
    case "int64":
      return { json: "integer", go: text };
    case "time":
    case "microtime":
      return { json: "string", go: "string", format: text };
    case "integerOrString":
      return { json: text, go: "int32" };
    case "quantity":
    case "any":
      return { json: text, go };
    default:
      throw new TypeError(`the type ${text} has no shape`);
  }
}

function structShape(go: string, text: string): StructShape {
  const fields: Record<string, Shape> = {};
  const embedded: Record<string, string> = {};
  for (const field of text.split(" ").filter((field) => field !== "")) {
    const [place = "", type = ""] = field.split("=");
    const name = place.slice(place.lastIndexOf(".") + 1);
    fields[name] = shapeOf(type);
    if (name !== place) embedded[name] = place.slice(0, place.lastIndexOf("."));
  }
  const [version = "", struct = ""] = go.split(".");
  return { json: "struct", go: struct, package: version, fields, embedded, required: [] };
}

function readTypes(): TypeTexts {
  const structs = new Map<string, string>();
  const others = new Map<string, string>();
  for (const line of KUBERNETES_TYPES.trim().split("\n")) {
    const [, text = "", names = ""] = /^([^ ]*): (.*)$/.exec(line) ?? [];
    const [struct = "", fields = ""] = line.split(/ (.*)/);
    if (names === "") structs.set(struct, fields);
    else for (const name of names.split(" ")) others.set(name, text);
  }
  return { structs, others };
}
