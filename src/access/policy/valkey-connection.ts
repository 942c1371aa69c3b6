import { createHash } from "node:crypto";
import { readNamedFile } from "@sluice/client/internal/config/named-file-text";
import { notInstalled } from "@sluice/client/internal/config/optional-package";
import { UpstreamTls } from "@sluice/client/internal/net/tls";
import type { Redis } from "iovalkey";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { tlsOptionsOf } from "../../net/upstream-tls-files.ts";

/** One connection to the quota store; it never reconnects. */
export interface QuotaConnection {
  /**
   * Runs the script in quota-script.ts. Rejects with the store's error, or if the answer takes too
   * long.
   */
  run(keys: readonly string[], values: readonly string[]): Promise<unknown>;
  close(): void;
}

/** Connects, or rejects. Calls `onClosed` once, after the connection is lost. */
export type ConnectQuotaStore = (onClosed: () => void) => Promise<QuotaConnection>;

const DEFAULT_PORT = 6379;
/**
 * Bytes of one unfinished answer from the quota store. Past it the connection is closed and the
 * store counts as unreachable.
 */
const MAX_QUOTA_ANSWER_BYTES = 64 * 1024;

/**
 * Dialling the quota store: name lookup, TCP and TLS. Past it the store counts as unreachable; a
 * starting replica waits no longer.
 */
const CONNECT_MS = 1_000;

/** Loads the client library for Valkey or Redis. Throws NotInstalledError. */
export async function valkeyConnector(
  settings: NonNullable<GatewayConfiguration["quotaStore"]>,
): Promise<ConnectQuotaStore> {
  const { Redis } = await import("iovalkey").catch(notInstalled("iovalkey", "quotaStore"));
  const { protocol, hostname, port, pathname } = new URL(settings.url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const where = { host, port: port === "" ? DEFAULT_PORT : Number(port), db: Number(pathname.slice(1)) };
  return async (onClosed) => {
    // Reads passwords and certificates for each connection, because they are rotated.
    const { username, passwordFile } = settings;
    const password = passwordFile && (await readNamedFile(passwordFile)).trim();
    const tls =
      protocol === "rediss:"
        ? {
            ...new UpstreamTls(await tlsOptionsOf(settings, readNamedFile)).connectOptions(host, where.port),
            ALPNProtocols: [],
          }
        : undefined;
    const client = new Redis({
      ...where,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tls && { tls }),
      connectionName: "sluice",
      connectTimeout: CONNECT_MS,
      // Disables the library's own queues and retries: QuotaLeases handles a lost store.
      lazyConnect: true,
      enableOfflineQueue: false,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: () => null,
    });
    let problem: Error | undefined;
    // Without a listener an error would end the process.
    client.on("error", (error: Error) => {
      problem = error;
    });
    client.once("end", onClosed);
    const reading = new BoundedReading();
    client.once("connect", () => reading.watch(client.stream));
    try {
      await client.connect();
    } catch (error) {
      client.disconnect();
      throw problem ?? error;
    }
    reading.answered();
    return connectionOver(client, settings.commandTimeoutMs, reading);
  };
}

/**
 * Limits unfinished answers: the library buffers one until it is complete, whatever length the
 * store announces.
 */
class BoundedReading {
  #bytes = 0;

  watch(socket: Redis["stream"]): void {
    const parsers = socket.listeners("data");
    socket.on("data", (part: Buffer) => {
      this.#bytes += part.byteLength;
      if (this.#bytes > MAX_QUOTA_ANSWER_BYTES) {
        socket.destroy(new Error("the answer is too long"));
        return;
      }
      try {
        for (const parse of parsers) parse.call(socket, part);
      } catch (error) {
        // The library's parser calls itself for each nested array, and would end the process.
        socket.destroy(new Error("the answer cannot be read", { cause: error }));
      }
    });
    for (const parse of parsers) socket.removeListener("data", parse as (part: Buffer) => void);
  }

  answered(): void {
    this.#bytes = 0;
  }
}

function connectionOver(client: Redis, timeoutMs: number, reading: BoundedReading): QuotaConnection {
  const answers = async (response: Promise<unknown>): Promise<unknown> => {
    const answer = await within(timeoutMs, response);
    reading.answered();
    return answer;
  };
  return {
    run: async (keys, values) => {
      const parameters = [keys.length, ...keys, ...values] as const;
      try {
        return await answers(client.evalsha(QUOTA_SCRIPT_SHA1, ...parameters));
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
        return answers(client.eval(QUOTA_SCRIPT, ...parameters));
      }
    },
    close: () => client.disconnect(),
  };
}

function within<T>(timeoutMs: number, response: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // A process that was suspended first reads the answers that arrived meanwhile; the library's
      // own timer does not.
      setImmediate(() => reject(new Error(`no response within ${timeoutMs} ms`)));
    }, timeoutMs);
    response.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

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
const QUOTA_SCRIPT = `
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

const QUOTA_SCRIPT_SHA1: string = createHash("sha1").update(QUOTA_SCRIPT).digest("hex");

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
