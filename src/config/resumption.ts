import type { Section } from "./section.ts";

/** Sessions with other Sluices that survive lost connections (protocols/resume). Whoever does not ask for it is served plainly. */
export interface Resumption {
  readonly enabled: boolean;
  /** How long a session whose connection is lost waits for the next one. Whole seconds: clients are told them. */
  readonly windowMs: number;
  /** What may be on its way unacknowledged, in each direction of a session. */
  readonly windowBytes: number;
  /** Resumable sessions at once. Past it, sessions are served plainly. */
  readonly maxSessions: number;
  /** What all of them together may come to hold: each counts with both of its windows. Past it, sessions are served plainly. */
  readonly maxTotalBytes: number;
}

const SECOND_MS = 1_000;
const KIB = 1024;
const MIB = 1024 * KIB;

export function readResumption(section: Section): Resumption {
  const resumption = {
    enabled: section.boolean("enabled", true),
    windowMs: section.durationMs("window", 120 * SECOND_MS, { min: SECOND_MS, max: 24 * 3_600 * SECOND_MS }),
    windowBytes: section.bytes("windowBytes", MIB, { min: 64 * KIB, max: 64 * MIB }),
    maxSessions: section.count("maxSessions", 1_000, { min: 1, max: 1_000_000 }),
    maxTotalBytes: section.bytes("maxTotalBytes", 1024 * MIB, { min: 128 * KIB, max: 2 ** 40 }),
  };
  if (resumption.windowMs % SECOND_MS !== 0) section.problem("window", "must be whole seconds");
  if (resumption.maxTotalBytes < 2 * resumption.windowBytes) {
    section.problem("maxTotalBytes", "must be at least twice windowBytes: one session's");
  }
  section.finish();
  return resumption;
}
