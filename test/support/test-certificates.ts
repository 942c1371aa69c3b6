import { generate } from "selfsigned";

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface SubjectFields {
  readonly commonName?: string;
  readonly organizations?: readonly string[];
}

export interface IssueOptions {
  readonly isAuthority?: boolean;
  readonly addresses?: readonly string[];
  /** DNS names. */
  readonly names?: readonly string[];
  readonly usage?: "client" | "server";
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

/** A new certificate, self-signed if `issuer` is absent. */
export async function issueCertificate(
  { commonName, organizations = [] }: SubjectFields,
  issuer?: TestCertificate,
  {
    isAuthority = issuer === undefined,
    addresses = [],
    names = [],
    usage,
    notBefore,
    notAfter,
  }: IssueOptions = {},
): Promise<TestCertificate> {
  const attributes = [
    ...organizations.map((value) => ({ name: "organizationName", value })),
    ...(commonName === undefined ? [] : [{ name: "commonName", value: commonName }]),
  ];
  const { cert, private: key } = await generate(attributes, {
    keyType: "ec",
    algorithm: "sha256",
    notBeforeDate: notBefore ?? new Date(Date.now() - 3_600_000),
    notAfterDate: notAfter ?? new Date(Date.now() + 90 * 86_400_000),
    ...(issuer && { ca: issuer }),
    extensions: [
      { name: "basicConstraints", cA: isAuthority, critical: true },
      ...(usage === undefined
        ? []
        : [{ name: "extKeyUsage" as const, clientAuth: usage === "client", serverAuth: usage === "server" }]),
      ...(addresses.length + names.length === 0
        ? []
        : [
            {
              name: "subjectAltName" as const,
              altNames: [
                ...addresses.map((ip) => ({ type: 7 as const, ip })),
                ...names.map((value) => ({ type: 2 as const, value })),
              ],
            },
          ]),
    ],
  });
  return { cert, key };
}
