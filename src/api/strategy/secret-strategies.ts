import { keyPairProblem } from "@sluice/client/internal/config/key-pair";
import { type FieldError, invalidValue, required, tooLong } from "../field-errors.ts";
import { type Lease, type Secret, TLS_SECRET_TYPE } from "../networking-objects.ts";
import { goBase64Problem } from "../validation/go-time.ts";
import { configKeyProblems, subdomainProblems } from "../validation/name-rules.ts";
import { leaseShape } from "../validation/networking-shapes.ts";
import { metadataShape } from "../validation/object-shapes.ts";
import { flag, named, type Shape, struct, text, textMap } from "../validation/shape.ts";
import { validateMetadata } from "../validation/validate-metadata.ts";
import { plainStrategy } from "./strategy.ts";

/** JSON encodes Go's []byte as base64. */
const bytesMap: Shape = { json: "map", go: "map[string][]uint8", values: { json: "string", go: "[]uint8" } };

const secretShape = struct("Secret", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  type: named("SecretType"),
  data: bytesMap,
  stringData: textMap,
  immutable: flag,
});

/** Kubernetes' limit for all values of a Secret together. */
const MAX_SECRET_BYTES = 1024 * 1024;

export const secretStrategy = plainStrategy<Secret>({
  kind: "Secret",
  apiVersion: "v1",
  resource: "secrets",
  isNamespaced: true,
  shape: secretShape,
  withDefaults: withSecretDefaults,
  validate: validateSecret,
  warnings: secretWarnings,
});

/** `stringData` is write-only: its values override those in `data`. */
function withSecretDefaults({ stringData, ...secret }: Secret): Secret {
  const texts = Object.entries((stringData ?? {}) as Record<string, string>);
  const encoded = texts.map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
  const data = { ...secret.data, ...Object.fromEntries(encoded) } as Record<string, string>;
  return {
    ...(secret as Secret),
    type: secret.type || "Opaque",
    ...((secret.data !== undefined || texts.length > 0) && { data }),
  };
}

export const leaseStrategy = plainStrategy<Lease>({
  kind: "Lease",
  apiVersion: "coordination.k8s.io/v1",
  resource: "leases",
  isNamespaced: true,
  shape: leaseShape,
  validate: validateLease,
});

/** The API server's checks of a Secret. Messages contain no value. */
function validateSecret({ metadata, type, data = {} }: Secret): FieldError[] {
  const values = Object.entries(data);
  const bytes = values.reduce((sum, [, value]) => sum + Buffer.byteLength(value, "base64"), 0);
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems: subdomainProblems }),
    ...values.flatMap(([key, value]) => valueErrors(key, value)),
    ...(bytes > MAX_SECRET_BYTES ? [tooLong(["data"], MAX_SECRET_BYTES)] : []),
    ...(type === TLS_SECRET_TYPE
      ? ["tls.crt", "tls.key"]
          .filter((key) => data[key] === undefined)
          .map((key) => required([`data[${key}]`]))
      : []),
  ];
}

/** The API server's warnings about a valid TLS Secret. They contain no value. */
function secretWarnings({ type, data = {} }: Secret): string[] {
  if (type !== TLS_SECRET_TYPE) return [];
  const [certificate, key] = ["tls.crt", "tls.key"].map((name) =>
    Buffer.from(data[name] ?? "", "base64").toString(),
  ) as [string, string];
  const problem = keyPairProblem(certificate, key);
  return problem === undefined ? [] : [problem];
}

function valueErrors(key: string, value: string): FieldError[] {
  const path = [`data[${key}]`];
  const isBase64 = goBase64Problem(value) === undefined;
  return [
    ...configKeyProblems(key).map((problem) => invalidValue(path, key, problem)),
    ...(isBase64 ? [] : [invalidValue(path, "<secret contents omitted>", "must be base64")]),
  ];
}

function validateLease({ metadata, spec = {} }: Lease): FieldError[] {
  const { leaseDurationSeconds, leaseTransitions } = spec;
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems: subdomainProblems }),
    ...(leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0
      ? [invalidValue(["spec", "leaseDurationSeconds"], leaseDurationSeconds, "must be greater than 0")]
      : []),
    ...(leaseTransitions !== undefined && leaseTransitions < 0
      ? [invalidValue(["spec", "leaseTransitions"], leaseTransitions, "must be greater than or equal to 0")]
      : []),
  ];
}
