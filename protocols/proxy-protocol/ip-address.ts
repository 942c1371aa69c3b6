const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9A-Fa-f]{1,4}$/;
const IPV6_GROUPS = 8;

/** Four numbers without leading zeros. */
export function isIPv4(text: string): boolean {
  const octets = text.split(".");
  return octets.length === 4 && octets.every((octet) => OCTET.test(octet) && Number(octet) <= 255);
}

/** RFC 4291 section 2.2; a zone is refused. */
export function isIPv6(text: string): boolean {
  const [left = "", right, ...rest] = text.split("::");
  if (rest.length > 0) return false;
  const isLeftWhole = right === undefined;
  const before = groupsOf(left, isLeftWhole);
  const after = right === undefined ? 0 : groupsOf(right, true);
  if (before === undefined || after === undefined) return false;
  return isLeftWhole ? before === IPV6_GROUPS : before + after < IPV6_GROUPS;
}

/**
 * The number of 16-bit groups; an IPv4 address at the end counts as two. Undefined if any part is
 * invalid.
 */
function groupsOf(text: string, mayEndInIPv4: boolean): number | undefined {
  if (text === "") return 0;
  const groups = text.split(":");
  const last = groups.pop() as string;
  const endsInIPv4 = mayEndInIPv4 && isIPv4(last);
  if (!endsInIPv4) groups.push(last);
  return groups.every((group) => GROUP.test(group)) ? groups.length + (endsInIPv4 ? 2 : 0) : undefined;
}
