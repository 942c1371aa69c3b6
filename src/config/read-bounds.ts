import {
  defaultLimits,
  type Limits,
  limitRanges,
  type Range,
  type SpdyConnectionLimits,
  STALL_HEADROOM_BYTES,
} from "./limits.ts";
import { formatQuantity } from "./quantity.ts";
import type { Section } from "./section.ts";
import { defaultTimeouts, type Timeouts, timeoutRanges } from "./timeouts.ts";

const LEAST_BYTES_PER_SECOND = 16 * 1024;

export function readLimits(section: Section): Limits {
  const { spdy: defaultSpdy, ...defaults } = defaultLimits;
  const { spdy: spdyRanges, ...ranges } = limitRanges;
  const spdySection = section.section("spdy");
  const spdy: SpdyConnectionLimits = readNumbers(spdySection, defaultSpdy, spdyRanges);
  const limits = { ...readNumbers(section, defaults, ranges), spdy };
  spdySection.finish();
  const least = limits.socketBufferBytes + STALL_HEADROOM_BYTES;
  if (limits.stalledPeerBufferBytes < least) {
    // Otherwise payload alone, with a reader that is merely slow, would end the session.
    section.problem(
      "stalledPeerBufferBytes",
      `must be at least ${formatQuantity(least)}: socketBufferBytes and 128Ki`,
    );
  }
  const slow = checkBytesPerSecond(limits.maxConnectionBytesPerSecond);
  if (slow !== undefined) section.problem("maxConnectionBytesPerSecond", slow);
  section.finish();
  return limits;
}

/** A chunk of 64 KiB must not hold up heartbeats for longer than they wait for each other. */
export function checkBytesPerSecond(value: number): string | undefined {
  const isFit = value === 0 || value >= LEAST_BYTES_PER_SECOND;
  return isFit ? undefined : `must be 0, for no bound, or at least ${formatQuantity(LEAST_BYTES_PER_SECOND)}`;
}

export function readTimeouts(section: Section): Timeouts {
  const timeouts = Object.entries(defaultTimeouts).map(([name, fallback]: [string, number]) => {
    const range = timeoutRanges[name as keyof Timeouts];
    return [name, section.durationMs(name.replace(/Ms$/, ""), fallback, range)];
  });
  section.finish();
  return Object.fromEntries(timeouts) as Timeouts;
}

/** The unit is the end of the name. */
function readNumbers<T extends { readonly [Name in keyof T]: number }>(
  section: Section,
  defaults: T,
  ranges: { readonly [Name in keyof T]: Range },
): T {
  const numbers = (Object.keys(defaults) as (keyof T & string)[]).map((name) => {
    const read = /Bytes(PerSecond)?$/.test(name) ? section.bytes : section.count;
    return [name, read.call(section, name, defaults[name], ranges[name])];
  });
  return Object.fromEntries(numbers) as T;
}
