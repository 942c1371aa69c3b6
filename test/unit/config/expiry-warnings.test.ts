import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { NamedFile } from "@sluice/client/internal/config/named-file-text";
import { expect, it, onTestFinished } from "vitest";
import { expiryWarnings } from "../../../src/config/configuration-warnings.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2030, 0, 1);

it.each([
  [365, 334, []],
  [365, 336, ["the certificate expires"]],
  [365, 366, ["the certificate expired"]],
  // Short-lived: the last third.
  [3, 1.9, []],
  [3, 2.1, ["the certificate expires"]],
])("a certificate of %d days after %d: %j", async (lifetimeDays, days, expected) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "sluice-expiry-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { cert } = await issueCertificate({ commonName: "gateway" }, undefined, {
    notBefore: new Date(START_MS),
    notAfter: new Date(START_MS + lifetimeDays * DAY_MS),
  });
  const file = path.join(folder, "tls.crt");
  writeFileSync(file, cert);
  const place = { source: "gateway.yaml", line: 1, column: 1, path: "listeners" };
  const files: NamedFile[] = [
    { ...place, file, content: "certificates" },
    { ...place, file: path.join(folder, "tls.key"), content: "private key", certificateFile: file },
  ];
  const warnings = await expiryWarnings(files, START_MS + days * DAY_MS);
  expect(warnings).toEqual(expected.map((text) => expect.stringContaining(text)));
});
