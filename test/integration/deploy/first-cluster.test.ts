import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../../src/cli/command-line.ts";
import { dropsSpacedHeaders } from "../../../src/config/configuration-warnings.ts";

const page = readFileSync(new URL("../../../docs/first-cluster.md", import.meta.url), "utf8");
const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => text ?? "");
const blockWith = (text: string): string => blocks.find((block) => block.includes(text)) ?? "";

describe("docs/first-cluster.md", () => {
  let folder = "";
  let printed = "";
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-first-cluster-"));
    printed = "";
    for (const stream of [process.stdout, process.stderr])
      vi.spyOn(stream, "write").mockImplementation((text) => {
        printed += String(text);
        return true;
      });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });

  const shell = (script: string) =>
    spawnSync("sh", ["-e", "-c", script], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, SERVER: "https://192.0.2.1:6443" },
    });

  it("has blocks that a shell reads", () => {
    expect(blocks.length).toBeGreaterThan(6);
    for (const block of blocks)
      expect(spawnSync("sh", ["-n", "-c", block], { encoding: "utf8" })).toMatchObject({
        status: 0,
        stderr: "",
      });
  });

  it("writes certificates and a configuration that check-config takes without a warning of their own, and rights for it", async () => {
    expect(shell(blockWith("openssl req"))).toMatchObject({ status: 0 });
    // What the cluster would have signed and given.
    expect(
      shell(
        "openssl req -x509 -key kubelet-client.key -subj /CN=sluice-gateway -days 365 -out kubelet-client.crt",
      ),
    ).toMatchObject({ status: 0 });
    copyFileSync(path.join(folder, "gateway.crt"), path.join(folder, "cluster-ca.crt"));
    writeFileSync(path.join(folder, "gateway.token"), "t");
    const cluster =
      "{ name: c, cluster: { server: 'https://192.0.2.1:6443', certificate-authority: cluster-ca.crt } }";
    writeFileSync(
      path.join(folder, "gateway.kubeconfig"),
      `apiVersion: v1\nkind: Config\ncurrent-context: g\nclusters: [${cluster}]\nusers: [{ name: g, user: { token: t } }]\ncontexts: [{ name: g, context: { cluster: c, user: g } }]\n`,
    );
    expect(shell(blockWith("cat > gateway.yaml").replace(/^sluice .*$/m, ""))).toMatchObject({
      status: 0,
      stderr: "",
    });
    const file = path.join(folder, "gateway.yaml");
    expect(await runCommand("check-config", ["-f", file])).toBe(0);
    const warnings = printed.match(/^Warning: .*\n/gm) ?? [];
    // On Node.js 20 users are told of what it does to their impersonated names.
    const isOld = dropsSpacedHeaders(process.versions.node);
    expect(warnings).toEqual(isOld ? [expect.stringContaining("white space")] : []);
    expect(printed.slice(warnings.join("").length)).toBe(
      `${file}: a valid GatewayConfiguration, with 0 objects in its manifests\n`,
    );
    printed = "";
    expect(await runCommand("rbac", ["--config", file, "--service-account", "sluice/gateway"])).toBe(0);
    expect(printed).toContain("tokenreviews");
    expect(printed).not.toContain("impersonate");
    // As the page removes them.
    expect(printed.match(/^ {2}name: (.*)$/gm)).toEqual([
      "  name: sluice",
      "  name: sluice",
      "  name: sluice",
    ]);
  });
});
