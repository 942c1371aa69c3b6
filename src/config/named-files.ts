import { createPrivateKey, X509Certificate } from "node:crypto";
import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import { keyPairProblem, type PemSource } from "@sluice/client/internal/config/key-pair";
import type { NamedFile } from "@sluice/client/internal/config/named-file-text";
import { parseWebhookKubeconfig } from "@sluice/client/internal/config/webhook-kubeconfig";
import { parseAuditPolicy } from "./audit-policy.ts";
import { parseAuthenticationFile } from "./authentication-file.ts";
import { readText } from "./load-configuration.ts";

/**
 * Reads every file that a configuration names before a component starts. Throws ConfigurationError
 * with every missing or wrong file, at its field's line or at a line inside the file.
 */
export async function checkNamedFiles(files: readonly NamedFile[]): Promise<void> {
  const problems: ConfigurationProblem[] = [];
  for (const named of files) {
    try {
      await checkOne(named);
    } catch (error) {
      problems.push(...problemsOf(error, named));
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
}

async function checkOne({ file, content, certificateFile }: NamedFile): Promise<void> {
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
      await checkKubeconfig(text, file);
      return;
    case "text":
      return;
  }
}

async function checkKubeconfig(text: string, file: string): Promise<void> {
  const { files, clientCertificate, clientKey } = parseWebhookKubeconfig(text, file);
  await checkNamedFiles(files);
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
  const problem = hasCertificates(pem, certificateFile) ? keyPairProblem(pem, text) : undefined;
  if (problem !== undefined) {
    throw new Error(
      `the key in ${file} does not belong to the certificate in ${certificateFile}: ${problem}`,
    );
  }
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
  if (!(error instanceof ConfigurationError)) return [at((error as Error).message)];
  return error.problems.map((problem) =>
    problem.source === named.file && problem.line === 0 ? at(problem.message) : problem,
  );
}
