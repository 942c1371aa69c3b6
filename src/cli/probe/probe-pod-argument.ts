import type { Container, Pod } from "../../api/objects.ts";
import type { Probe } from "../../api/probe-objects.ts";
import { readManifestFiles } from "../../cluster/manifest-files.ts";
import { parseManifests } from "../../cluster/manifests.ts";
import type { FeatureGates } from "../../config/feature-gates.ts";
import { maskControls } from "../../observability/mask-controls.ts";
import { PROBE_KINDS, type ProbeKind, probeOf } from "../../probes/worker/probe-kind.ts";
import { probedContainers } from "../../probes/worker/probe-manager.ts";
import { UsageError } from "../usage-error.ts";

interface PodProbe {
  readonly pod: Pod;
  readonly container: Container;
  readonly kind: ProbeKind;
  readonly probe: Probe;
}

/**
 * Reads a pod's probe from a manifest and validates it like the API server. Throws UsageError, or
 * ConfigurationError for the manifest.
 */
export async function readPodProbe(
  file: string,
  wanted: {
    readonly container?: string | undefined;
    readonly kind?: string | undefined;
    readonly pod?: string | undefined;
  },
  gates: FeatureGates,
): Promise<PodProbe> {
  const warn = (line: string): void => void process.stderr.write(`${maskControls(line)}\n`);
  const objects = parseManifests(await readManifestFiles([file]), gates, warn);
  const pods = objects.filter((object): object is Pod => object.kind === "Pod");
  if (pods.length === 0) throw new UsageError(`${file} has no Pod: a Pod's own manifest is needed`);
  const pod = onlyOne(
    pods.filter(({ metadata }) => wanted.pod === undefined || metadata.name === wanted.pod),
    ({ metadata }) => metadata.name,
    "pod",
    file,
    wanted.pod,
  );
  const containers = probedContainers(pod).filter(
    ({ name }) => wanted.container === undefined || name === wanted.container,
  );
  const container = onlyOne(containers, ({ name }) => name, "container", file, wanted.container);
  const kinds = PROBE_KINDS.filter(
    (kind) =>
      probeOf(container, kind) !== undefined &&
      (wanted.kind === undefined || kind.toLowerCase() === wanted.kind.toLowerCase()),
  );
  const kind = onlyOne(kinds, (name) => name.toLowerCase(), "kind", file, wanted.kind);
  return { pod, container, kind, probe: probeOf(container, kind) ?? {} };
}

function onlyOne<T>(
  found: readonly T[],
  nameOf: (item: T) => string,
  flag: string,
  file: string,
  wanted: string | undefined,
): T {
  const [first, second] = found;
  const what = flag === "kind" ? "probe" : flag;
  if (first === undefined) {
    throw new UsageError(`${file} has no ${what}${wanted === undefined ? "" : ` ${JSON.stringify(wanted)}`}`);
  }
  if (second === undefined) return first;
  const names = found.map(nameOf).join(", ");
  throw new UsageError(`${file} has several ${what}s: choose one with --${flag} (${names})`);
}
