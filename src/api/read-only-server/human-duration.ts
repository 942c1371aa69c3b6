const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/**
 * Formats an age as kubectl does: two units while the smaller one matters, then one
 * (k8s.io/apimachinery duration.HumanDuration).
 */
function humanDuration(seconds: number): string {
  const whole = Math.trunc(seconds);
  // Allows one second of clock difference between machines.
  if (whole < -1) return "<invalid>";
  if (whole < 0) return "0s";
  if (whole < 2 * MINUTE) return `${whole}s`;
  if (whole < 10 * MINUTE) return twoUnits(whole, MINUTE, "m", 1, "s");
  if (whole < 3 * HOUR) return `${Math.floor(whole / MINUTE)}m`;
  if (whole < 8 * HOUR) return twoUnits(whole, HOUR, "h", MINUTE, "m");
  if (whole < 2 * DAY) return `${Math.floor(whole / HOUR)}h`;
  if (whole < 8 * DAY) return twoUnits(whole, DAY, "d", HOUR, "h");
  if (whole < 2 * YEAR) return `${Math.floor(whole / DAY)}d`;
  if (whole < 8 * YEAR) return twoUnits(whole, YEAR, "y", DAY, "d");
  return `${Math.floor(whole / YEAR)}y`;
}

/** The age of an RFC 3339 time stamp. */
export function ageOf(timestamp: string | undefined, now: Date): string {
  const since = Date.parse(timestamp ?? "");
  return Number.isNaN(since) ? "<unknown>" : humanDuration((now.getTime() - since) / 1_000);
}

function twoUnits(
  seconds: number,
  large: number,
  largeName: string,
  small: number,
  smallName: string,
): string {
  const rest = Math.floor((seconds % large) / small);
  const main = `${Math.floor(seconds / large)}${largeName}`;
  return rest === 0 ? main : `${main}${rest}${smallName}`;
}
