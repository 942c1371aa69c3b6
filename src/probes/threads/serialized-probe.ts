import type { FaultPlace } from "@sluice/client/internal/observability/faults";
import type { ProbeHandler } from "../../api/probe-objects.ts";
import type { ProbeResult, WireFacts } from "../probe-result.ts";
import type { ProbeOptions, ProbeTarget } from "../probe-target.ts";

/** The arguments of `runProbe` that can be sent to a thread. Never an exec probe. */
interface SerializedProbe {
  readonly handler: ProbeHandler;
  readonly target: Pick<ProbeTarget, "host" | "containerPorts" | "name">;
  readonly options: Pick<ProbeOptions, "timeoutMs" | "userAgentVersion" | "gates">;
}

/**
 * The last text for each handler. A handler belongs to one container, and its probe stays the same
 * until the pod gets another address.
 */
const said = new WeakMap<ProbeHandler, { readonly probe: SerializedProbe; readonly text: string }>();

/** Serializes a probe, and caches the text. Its handler, ports and gates never change. */
export function described(handler: ProbeHandler, target: ProbeTarget, options: ProbeOptions): string {
  const known = said.get(handler);
  if (known !== undefined && isSame(known.probe, target, options)) return known.text;
  const { host, containerPorts, name } = target;
  const { timeoutMs, userAgentVersion, gates } = options;
  const probe: SerializedProbe = {
    handler,
    target: { host, containerPorts, name },
    options: { timeoutMs, userAgentVersion, gates },
  };
  const text = JSON.stringify(probe);
  said.set(handler, { probe, text });
  return text;
}

function isSame(before: SerializedProbe, target: ProbeTarget, options: ProbeOptions): boolean {
  const ports = before.target.containerPorts;
  return (
    before.target.host === target.host &&
    before.target.name === target.name &&
    (ports === target.containerPorts || (ports.length === 0 && target.containerPorts.length === 0)) &&
    before.options.timeoutMs === options.timeoutMs &&
    before.options.userAgentVersion === options.userAgentVersion &&
    before.options.gates === options.gates
  );
}

/**
 * Probes that a thread caches with their prepared requests, some 3 KB each. Past it all are
 * forgotten, and cached again when they are next used.
 */
const MAX_KNOWN_PROBES = 20_000;

/** Caches parsed texts. When full, it empties and starts over. */
export class KnownProbes {
  readonly #maxProbes: number;
  readonly #probes = new Map<string, SerializedProbe>();

  constructor(maxProbes: number = MAX_KNOWN_PROBES) {
    this.#maxProbes = maxProbes;
  }

  /** Returns the same object for the same text while it is cached. */
  read(text: string): SerializedProbe {
    const known = this.#probes.get(text);
    if (known !== undefined) return known;
    const probe = JSON.parse(text) as SerializedProbe;
    if (this.#probes.size >= this.#maxProbes) this.#probes.clear();
    this.#probes.set(text, probe);
    return probe;
  }

  get size(): number {
    return this.#probes.size;
  }
}

/**
 * One probe for a thread. `probe` is the text from `described`: a text is cheaper to send than an
 * object, and can be cached by value.
 */
export type ThreadRun = readonly [id: number, probe: string];

/**
 * A message from a thread: results by id. Unsuccessful ones include the wire facts, for diagnosis.
 */
export type ThreadAnswer = readonly ThreadResult[];

/** A message from a thread: a fault, which the main thread counts and logs. */
export interface ThreadFault {
  readonly where: FaultPlace;
  readonly error: Error;
}

export type ThreadResult = readonly [
  id: number,
  result: ProbeResult["result"],
  message: string,
  wire?: WireFacts,
  error?: string,
];
