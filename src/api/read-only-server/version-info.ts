/** The version in `/version`. */
export interface ServerVersion {
  /**
   * Semantic version with its `v`, such as `v1.36.0+sluice-0.1.0`; kubectl compares its own major
   * and minor with it.
   */
  readonly gitVersion: string;
  /** Such as `process.version`; `kubectl version -o yaml` prints it. */
  readonly runtime: string;
  /** `linux/amd64`. */
  readonly platform: string;
}

/** version.Info with every key that clients may read. The Go compiler's fields name our runtime. */
export function versionInfo({
  gitVersion,
  runtime,
  platform,
}: ServerVersion): Readonly<Record<string, string>> {
  const [major = "", minor = ""] = gitVersion.replace(/^v/, "").split(".");
  return {
    major,
    minor,
    gitVersion,
    gitCommit: "",
    gitTreeState: "",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: runtime,
    compiler: "",
    platform,
  };
}
