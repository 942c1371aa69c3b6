import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Target } from "../../../packages/client/src/index.ts";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { startRecording } from "../../../src/app/sessions-component.ts";
import { CONFIGURATION_KIND, parseConfiguration } from "../../../src/config/configuration.ts";
import type { Health } from "../../../src/lifecycle/component.ts";
import { UpstreamTlsFiles } from "../../../src/net/upstream-tls-files.ts";
import { createLogger } from "../../../src/observability/logger.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import type { BuiltRecording } from "../../../src/recording/component.ts";
import { eventually } from "../eventually.ts";
import { runWebNode } from "../fake-nodes.ts";
import { type GatewayHarness, type HarnessOptions, startGatewayHarness } from "../gateway-harness.ts";

/** The thread runs the compiled program, because Node.js 20 does not run TypeScript. */
const PROGRAM = pathToFileURL(path.resolve("dist/src/recording/thread/recorder-thread.js"));

export interface RecordedGatewayOptions {
  /** Further fields of the section `recording`. */
  readonly recording?: object;
  readonly declaresWebSockets?: boolean;
  readonly streaming?: HarnessOptions["streaming"];
  /** The port of a kubelet. Absent: a fake node with real processes. */
  readonly kubeletPort?: number;
  readonly program?: URL;
  readonly folder?: string;
  readonly limits?: HarnessOptions["limits"];
}

/** A gateway that records what its rules select, in front of a fake node. */
export class RecordedGateway {
  readonly folder: string;
  readonly harness: GatewayHarness;
  readonly #metrics: Metrics;
  readonly #node: FakeNode | undefined;
  readonly #recording: BuiltRecording;
  readonly #ownsFolder: boolean;
  readonly #upstreams: UpstreamTlsFiles;
  /** Log lines about recordings. */
  readonly logLines: string[];
  #stopped: Promise<void> | undefined;

  private constructor(
    folder: string,
    harness: GatewayHarness,
    metrics: Metrics,
    node: FakeNode | undefined,
    recording: BuiltRecording,
    logLines: string[],
    ownsFolder: boolean,
    upstreams: UpstreamTlsFiles,
  ) {
    this.folder = folder;
    this.harness = harness;
    this.#metrics = metrics;
    this.#node = node;
    this.#recording = recording;
    this.logLines = logLines;
    this.#ownsFolder = ownsFolder;
    this.#upstreams = upstreams;
  }

  static async start(options: RecordedGatewayOptions = {}): Promise<RecordedGateway> {
    const folder = options.folder ?? mkdtempSync(path.join(tmpdir(), "sluice-recordings-"));
    const settings = settingsOf(folder, options.recording);
    const metrics = new Metrics({ withProcessMetrics: false });
    const logLines: string[] = [];
    const logger = createLogger({
      level: "debug",
      destination: { write: (line) => void logLines.push(line) },
    });
    const node =
      options.kubeletPort === undefined
        ? await runWebNode({ declaresWebSockets: options.declaresWebSockets ?? false })
        : undefined;
    const cluster = { getPod: () => undefined };
    const { program = PROGRAM } = options;
    const upstreams = new UpstreamTlsFiles({ logger });
    const parts = { metrics, logger, upstreams, program };
    const started = await startRecording(
      { recording: settings } as never,
      { store: cluster } as never,
      parts,
    );
    const recording = started.recording as BuiltRecording;
    const harness = await startGatewayHarness({
      kubeletPort: options.kubeletPort ?? (node as FakeNode).port,
      beforeDial: recording.beforeDial,
      ...(node !== undefined && { declaredFeatures: node.declaredFeatures }),
      ...(options.streaming !== undefined && { streaming: options.streaming }),
      ...(options.limits !== undefined && { limits: options.limits }),
    });
    const ownsFolder = options.folder === undefined;
    return new RecordedGateway(folder, harness, metrics, node, recording, logLines, ownsFolder, upstreams);
  }

  get authority(): string {
    return this.harness.authority;
  }

  /** The text of `/readyz?verbose`. */
  get health(): Health {
    return this.#recording.health?.();
  }

  get target(): Target {
    return new Target({ url: `http://${this.harness.authority}` });
  }

  get storeTrust() {
    return this.#recording.storeTrust;
  }

  async metric(name: string): Promise<string[]> {
    return (await this.#metrics.expose())
      .split("\n")
      .filter((line) => line.startsWith(name) && !line.endsWith(" 0"));
  }

  /** Waits until there are this many finished recordings, and returns them. */
  async recordings(count = 1): Promise<string[]> {
    return await eventually(`${count} finished recordings`, () => {
      const files = filesIn(this.folder, ".cast");
      return files.length === count && files;
    });
  }

  /** The text of the only finished recording. */
  async recording(): Promise<string> {
    const [file = ""] = await this.recordings();
    return readFileSync(file, "utf8");
  }

  /** Stops the gateway and the recorder, and keeps the folder. */
  shutDown(): Promise<void> {
    this.#stopped ??= (async () => {
      await this.harness.close();
      await this.#recording.stop();
      this.#upstreams.stop();
      await this.#node?.close();
    })();
    return this.#stopped;
  }

  async stop(): Promise<void> {
    await this.shutDown();
    if (this.#ownsFolder) rmSync(this.folder, { recursive: true, force: true });
  }
}

export function settingsOf(folder: string, more: object = {}) {
  const section = { folder, rules: [{ name: "all" }], minFreeBytes: 0, ...more };
  const document = { apiVersion: "sluice.dev/v1alpha1", kind: CONFIGURATION_KIND, recording: section };
  const { recording } = parseConfiguration(JSON.stringify(document), "recording.json");
  if (recording === undefined) throw new Error("the section is there");
  return recording;
}

/** Files below the folder whose names have this ending. */
export function filesIn(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => path.join(folder, name));
}
