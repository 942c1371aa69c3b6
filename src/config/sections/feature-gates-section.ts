import type { Field } from "@sluice/client/internal/config/field";
import { declare } from "@sluice/client/internal/config/fields";
import { suggestion } from "@sluice/client/internal/config/nearest-name";
import type { Section } from "@sluice/client/internal/config/section";
import { FeatureGateError, FeatureGates, featureGateNames } from "../feature-gates.ts";

const FLAG = "feature-gates";
const NAMES: readonly string[] = [...featureGateNames, "AllAlpha", "AllBeta"];

/** kube-apiserver's gates; `withGatesOfFlag` adds the flag's settings. */
export const featureGates: Field<FeatureGates, "*"> = declare(
  "Feature gates of Kubernetes; `AllAlpha` and `AllBeta` set the gates of a stage that are not named.",
  {
    flag: { name: FLAG, placeholder: "A=true,B=false", read: () => undefined },
    type: "map of booleans",
    schema: {
      type: "object",
      properties: Object.fromEntries(NAMES.map((name) => [name, { type: ["boolean", "null"] }])),
      additionalProperties: false,
    },
    read: readFeatureGates,
  },
);

function readFeatureGates(parent: Section, name: string): FeatureGates {
  const section = parent.section(name);
  const settings: Record<string, boolean> = {};
  for (const [gate, value] of section.entries()) {
    if (typeof value !== "boolean") section.problem(gate, "must be true or false");
    else if (NAMES.includes(gate)) settings[gate] = value;
    else section.problem(gate, `unrecognized feature gate: ${gate}${suggestion(gate, featureGateNames)}`);
  }
  return parsedOr(
    FeatureGates.defaults,
    () => FeatureGates.parse(settings),
    (message) => parent.problem(name, message),
  );
}

/** The file's gates, overridden by the flag's; `refuse` receives the flag's problem. */
export function withGatesOfFlag(
  gates: FeatureGates,
  text: string | undefined,
  refuse: (flag: string, message: string) => void,
): FeatureGates {
  return parsedOr(
    gates,
    () => gates.with(text ?? ""),
    (message) => refuse(FLAG, message),
  );
}

function parsedOr(
  fallback: FeatureGates,
  parse: () => FeatureGates,
  refuse: (message: string) => void,
): FeatureGates {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof FeatureGateError)) throw error;
    refuse(error.message);
    return fallback;
  }
}
