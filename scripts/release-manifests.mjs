// Writes what package managers read about a release's binaries: Krew's manifest and Homebrew's
// formula. `platforms` are { file, os, arch, sum }; `home` is the repository's address.

/** The formula for a tap, with the Linux and macOS binaries that exist. */
export function homebrewFormula({ home, version, platforms }) {
  const system = { linux: "linux", darwin: "macos" };
  const processor = { amd64: "intel", arm64: "arm" };
  const blocks = platforms.map(
    ({ file, os, arch, sum }) => `  on_${system[os]} do
    on_${processor[arch]} do
      url "${home}/releases/download/v${version}/${file}"
      sha256 "${sum}"
    end
  end
`,
  );
  return `class Sluice < Formula
  desc "Streaming front door of Kubernetes nodes"
  homepage "${home}"
  version "${version}"
  license "Apache-2.0"

${blocks.join("\n")}
  def install
    bin.install "sluice"
    bin.install_symlink bin/"sluice" => "kubectl-sluice"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sluice --version")
  end
end
`;
}

/** The manifest for Krew's index, in which it is plugins/sluice.yaml. JSON is valid YAML. */
export function krewManifest({ home, version, platforms }) {
  const manifest = {
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "sluice" },
    spec: {
      version: `v${version}`,
      homepage: home,
      shortDescription: "Resumable exec, cp and port-forward",
      description:
        "exec, attach, cp and port-forward over WebSocket or SPDY; against a Sluice gateway, sessions survive lost connections.\nAlso the gateway itself, load and conformance tests: kubectl sluice --help.\n",
      caveats:
        "For completion, link the plugin as kubectl_complete-sluice in a folder of $PATH:\n  ln -s ~/.krew/bin/kubectl-sluice ~/.local/bin/kubectl_complete-sluice\n",
      platforms: platforms.map(({ file, os, arch, sum }) => ({
        selector: { matchLabels: { os, arch } },
        uri: `${home}/releases/download/v${version}/${file}`,
        sha256: sum,
        files: ["sluice", "LICENSE", "LICENSES"].map((from) => ({ from, to: "." })),
        bin: "sluice",
      })),
    },
  };
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}
