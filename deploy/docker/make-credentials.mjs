// Writes into a folder, unless it is done: a certificate for localhost, a token file with one random token, and a kubeconfig that
// holds both. Runs inside of the image, from /app. No credential is ever part of an image or of the repository.
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";

const folder = process.argv[2] ?? ".";
const kubeconfigFile = join(folder, "kubeconfig");
if (!existsSync(kubeconfigFile)) {
  const { certPem, keyPem } = await createSelfSignedCertificate();
  const token = randomBytes(16).toString("hex");
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "sluice",
    clusters: [
      {
        name: "sluice",
        cluster: {
          server: "https://localhost:6443",
          "certificate-authority-data": Buffer.from(certPem).toString("base64"),
        },
      },
    ],
    users: [{ name: "demo", user: { token } }],
    contexts: [{ name: "sluice", context: { cluster: "sluice", user: "demo", namespace: "default" } }],
  };
  const secret = { mode: 0o600 };
  writeFileSync(join(folder, "tls.crt"), certPem);
  writeFileSync(join(folder, "tls.key"), keyPem, secret);
  writeFileSync(join(folder, "tokens.csv"), `${token},demo,demo\n`, secret);
  // Last, because it says that all is there. JSON is YAML too.
  writeFileSync(kubeconfigFile, `${JSON.stringify(kubeconfig, null, 2)}\n`, secret);
}
