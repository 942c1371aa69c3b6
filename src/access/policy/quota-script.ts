import { createHash } from "node:crypto";

/**
 * A change to a session's lease: take it if there is room, keep it for another lease time, or drop
 * it.
 */
export interface QuotaChange {
  readonly action: "take" | "keep" | "drop";
  /** The session's unique name among all replicas. */
  readonly member: string;
  readonly user: string;
  readonly namespace: string;
}

export interface QuotaBounds {
  readonly maxSessionsPerUser?: number | undefined;
  readonly maxSessionsPerNamespace?: number | undefined;
}

/** The result of a `take`: granted, or the limit that was reached. */
export type QuotaAnswer = "granted" | "user" | "namespace";

const ANSWERS: readonly QuotaAnswer[] = ["granted", "user", "namespace"];

/**
 * Stores one sorted set of leases for each user and namespace: member by expiry, in milliseconds of
 * the server's clock. All changes in a call are one atomic step.
 */
export const QUOTA_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = tonumber(ARGV[1])
local answers = {}
for change = 1, #KEYS / 2 do
  local keys = { KEYS[2 * change - 1], KEYS[2 * change] }
  local action, member = ARGV[2 * change + 2], ARGV[2 * change + 3]
  local answer = 0
  for each = 1, 2 do
    if action == 'take' then
      redis.call('ZREMRANGEBYSCORE', keys[each], '-inf', now)
      local limit = tonumber(ARGV[1 + each])
      if answer == 0 and limit >= 0 and redis.call('ZCARD', keys[each]) >= limit then answer = each end
    elseif action == 'drop' then
      redis.call('ZREM', keys[each], member)
    end
  end
  if action ~= 'drop' and answer == 0 then
    for each = 1, 2 do
      redis.call('ZADD', keys[each], now + lease, member)
      if redis.call('PTTL', keys[each]) < lease then redis.call('PEXPIRE', keys[each], lease) end
    end
  end
  answers[change] = answer
end
return answers
`;

export const QUOTA_SCRIPT_SHA1: string = createHash("sha1").update(QUOTA_SCRIPT).digest("hex");

/** The script's keys and arguments. The part in braces puts all keys into one cluster slot. */
export function quotaCall(
  changes: readonly QuotaChange[],
  keyPrefix: string,
  leaseMs: number,
  { maxSessionsPerUser = -1, maxSessionsPerNamespace = -1 }: QuotaBounds,
): { readonly keys: readonly string[]; readonly values: readonly string[] } {
  return {
    keys: changes.flatMap(({ user, namespace }) => [
      `{${keyPrefix}}:user:${user}`,
      `{${keyPrefix}}:namespace:${namespace}`,
    ]),
    values: [
      String(leaseMs),
      String(maxSessionsPerUser),
      String(maxSessionsPerNamespace),
      ...changes.flatMap(({ action, member }) => [action, member]),
    ],
  };
}

/** Throws Error for an answer that the script cannot have given. */
export function readQuotaAnswers(answer: unknown, count: number): readonly QuotaAnswer[] {
  if (!Array.isArray(answer) || answer.length !== count)
    throw new Error("the quota store's answer is malformed");
  return answer.map((code: unknown) => {
    const known = typeof code === "number" ? ANSWERS[code] : undefined;
    if (known === undefined) throw new Error("the quota store's answer is malformed");
    return known;
  });
}
