/** What `/version` claims. */
export interface ServerVersion {
  /** Semantic version with its `v`, such as `v1.36.0+sluice-0.1.0`; kubectl compares major and minor with its own. */
  readonly gitVersion: string;
  /** `process.version` and the like; shown by `kubectl version -o yaml`. */
  readonly runtime: string;
  /** `linux/amd64`. */
  readonly platform: string;
}

/** version.Info, with every key that clients may read. There was no Go compiler: its fields name what runs instead. */
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
