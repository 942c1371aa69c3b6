import type { ProbeHandler } from "../../api/probe-objects.ts";
import type { ProbeOptions, ProbeTarget } from "../probe-target.ts";

/** What `runProbe` takes, as far as it can be sent. Never an exec probe. */
export interface SerializedProbe {
  readonly handler: ProbeHandler;
  readonly target: Pick<ProbeTarget, "host" | "containerPorts" | "name">;
  readonly options: Pick<ProbeOptions, "timeoutMs" | "userAgentVersion" | "gates">;
}

/** What was said of a handler last. It belongs to one container, whose probe is the same until the pod has another address. */
const said = new WeakMap<ProbeHandler, { readonly probe: SerializedProbe; readonly text: string }>();

/** A probe as a text, which is made once. Handlers, ports and gates are never changed. */
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

/** Probes that a thread knows by their texts: with what is made of them once, some 3 KB each. */
export const MAX_KNOWN_PROBES = 20_000;

/** Texts that were read already. With more of them than it may keep it begins anew. */
export class KnownProbes {
  readonly #maxProbes: number;
  readonly #probes = new Map<string, SerializedProbe>();

  constructor(maxProbes: number = MAX_KNOWN_PROBES) {
    this.#maxProbes = maxProbes;
  }

  /** The same object for the same text, as long as it is known. */
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
