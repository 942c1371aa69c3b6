import { keyPairProblem } from "@sluice/client/internal/config/key-pair";
import { type FieldError, invalidValue, required, tooLong } from "../field-errors.ts";
import { type Lease, type Secret, TLS_SECRET_TYPE } from "../networking-objects.ts";
import { goBase64Problem } from "./go-time.ts";
import { configKeyProblems, subdomainProblems } from "./name-rules.ts";
import { validateMetadata } from "./validate-metadata.ts";

/** Kubernetes' limit for all values of a Secret together. */
const MAX_SECRET_BYTES = 1024 * 1024;

/** The API server's checks of a Secret. Messages contain no value. */
export function validateSecret({ metadata, type, data = {} }: Secret): FieldError[] {
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
export function secretWarnings({ type, data = {} }: Secret): string[] {
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

export function validateLease({ metadata, spec = {} }: Lease): FieldError[] {
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
