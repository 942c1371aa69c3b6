import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import { checked, table } from "@sluice/client/internal/config/field";
import { boolean, choice, constant } from "@sluice/client/internal/config/fields";
import { keyPairProblem, type PemSource } from "@sluice/client/internal/config/key-pair";
import type { NamedFile } from "@sluice/client/internal/config/named-file-text";
import { Section } from "@sluice/client/internal/config/section";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { parseWebhookKubeconfig } from "@sluice/client/internal/config/webhook-kubeconfig";
import { EMPTY_DOCUMENT, parseYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import { parseAuditPolicy } from "./audit-policy.ts";
import { checkIssuers, type JwtIssuer, jwtAuthenticator, refused } from "./jwt-authenticators.ts";
import { readText } from "./load-configuration.ts";
import { optionalSection, sections } from "./section-fields.ts";

/** Parsers for files whose content is parsed by rooms above this one. */
type ContentOfRooms = "kubeconfig" | "static tokens" | "session keys" | "signing key";

/** Parses the text as its room does; throws as the room does at the start. */
type RoomParsers = Readonly<Record<ContentOfRooms, (text: string, file: string) => unknown>>;

/**
 * Reads every file that a configuration names before a component starts. Throws ConfigurationError
 * with every missing or wrong file, at its field's line or at a line inside the file.
 */
export async function checkNamedFiles(files: readonly NamedFile[], parsers: RoomParsers): Promise<void> {
  const problems: ConfigurationProblem[] = [];
  for (const named of files) {
    try {
      await checkOne(named, parsers);
    } catch (error) {
      problems.push(...problemsOf(error, named));
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
}

async function checkOne({ file, content, certificateFile }: NamedFile, parsers: RoomParsers): Promise<void> {
  const text = await readText(file);
  if (text.trim() === "") throw new Error(`${file} is empty`);
  switch (content) {
    case "certificates":
      certificatesOf(text, file);
      return;
    case "private key":
      await checkKey(text, file, certificateFile);
      return;
    case "audit policy":
      parseAuditPolicy(text, file);
      return;
    case "authentication configuration":
      parseAuthenticationFile(text, file);
      return;
    case "webhook kubeconfig":
      await checkWebhookKubeconfig(text, file, parsers);
      return;
    case "text":
      return;
    default:
      await parsers[content](text, file);
  }
}

async function checkWebhookKubeconfig(text: string, file: string, parsers: RoomParsers): Promise<void> {
  const { files, clientCertificate, clientKey } = parseWebhookKubeconfig(text, file);
  await checkNamedFiles(files, parsers);
  if (clientCertificate === undefined || clientKey === undefined) return;
  const problem = keyPairProblem(await pemIn(clientCertificate), await pemIn(clientKey));
  if (problem !== undefined)
    throw new Error(`the client's key in ${file} does not belong to its certificate: ${problem}`);
}

async function pemIn(source: PemSource): Promise<string> {
  return "pem" in source ? source.pem : await readText(source.file);
}

async function checkKey(text: string, file: string, certificateFile: string | undefined): Promise<void> {
  read(() => createPrivateKey(text), `${file} has no private key in PEM that can be used`);
  if (certificateFile === undefined) return;
  // The certificate's own problems are reported at its field.
  const pem = await readText(certificateFile).catch(() => "");
  if (!hasCertificates(pem, certificateFile)) return;
  const problem = keyPairProblem(pem, text);
  if (problem !== undefined) {
    throw new Error(
      `the key in ${file} does not belong to the certificate in ${certificateFile}: ${problem}`,
    );
  }
  read(
    () => createSecureContext({ cert: pem, key: text }),
    `OpenSSL refuses the key in ${file} with its certificate`,
  );
}

function hasCertificates(text: string, file: string): boolean {
  try {
    return certificatesOf(text, file).length > 0;
  } catch {
    return false;
  }
}

/** In file order: a server's own certificate comes first. */
function certificatesOf(text: string, file: string): X509Certificate[] {
  const blocks = text.match(PEM_CERTIFICATE) ?? [];
  if (blocks.length === 0) throw new Error(`${file} has no certificate in PEM`);
  return blocks.map((block, index) =>
    read(() => new X509Certificate(block), `certificate ${index + 1} of ${file} cannot be read`),
  );
}

const PEM_CERTIFICATE =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g;

function read<Result>(work: () => Result, problem: string): Result {
  try {
    return work();
  } catch (error) {
    throw new Error(`${problem}: ${(error as Error).message}`);
  }
}

/**
 * A problem inside the file keeps its line; a missing file, or one of another kind, is the field's
 * problem.
 */
function problemsOf(error: unknown, named: NamedFile): ConfigurationProblem[] {
  const { source, line, column, path } = named;
  const at = (message: string) => ({ source, line, column, path, message });
  if (!(error instanceof ConfigurationError)) return [at(systemErrorText(error))];
  return error.problems.map((problem) =>
    problem.source === named.file && problem.line === 0
      ? at(problem.isUnread ? `${named.file}: ${problem.message}` : problem.message)
      : problem,
  );
}

const GROUP = "apiserver.config.k8s.io";

const anonymous = checked(
  table({
    enabled: boolean("Whether requests without credentials are `system:anonymous`."),
    conditions: refused("requests without credentials are allowed on every path or on none"),
  }),
  ({ enabled }, at) => {
    if (enabled === true)
      at.problem("enabled", "is set by authentication.anonymous of the gateway, or --anonymous-auth");
  },
);

const document = checked(
  table({
    apiVersion: choice("The version.", [`${GROUP}/v1`, `${GROUP}/v1beta1`, `${GROUP}/v1alpha1`], {
      required: "is required",
    }),
    kind: constant("AuthenticationConfiguration"),
    jwt: sections("Issuers of tokens.", jwtAuthenticator),
    anonymous: optionalSection("Requests without credentials.", anonymous),
  }),
  ({ jwt }, at) => checkIssuers(jwt, at),
);

/**
 * Reads a file for kube-apiserver's --authentication-config. Throws ConfigurationError with all of
 * its problems.
 */
export function parseAuthenticationFile(text: string, fileName: string): readonly JwtIssuer[] {
  const [first = EMPTY_DOCUMENT] = parseYamlDocuments(text, fileName);
  const problems: ConfigurationProblem[] = [];
  const { jwt } = document.read(new Section({ fileName, document: first, problems }, [], first.value));
  if (problems.length > 0) throw new ConfigurationError(problems);
  return jwt;
}
