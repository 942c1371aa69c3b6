import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Sluice } from "./sluice.ts";

/**
 * `sluice` with a kubeconfig for a server on this machine's loopback, without credentials, and a
 * folder of its own.
 */
export class SluiceAtPort {
  readonly folder = mkdtempSync(path.join(tmpdir(), "sluice-at-port-"));
  readonly sluice: Sluice;

  constructor(port: number) {
    const kubeconfig = path.join(this.folder, "kubeconfig");
    const entries = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: {} }],
    };
    writeFileSync(kubeconfig, JSON.stringify(entries));
    this.sluice = new Sluice({ KUBECONFIG: kubeconfig });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
