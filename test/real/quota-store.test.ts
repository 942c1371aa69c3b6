import { afterAll, afterEach, expect, it } from "vitest";
import { publishSection } from "../support/evidence-sections.ts";
import { evidenceTable } from "../support/evidence-table.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import {
  byCode,
  metricOf,
  type QuotaReplica,
  QuotaReplicas,
  type QuotaReplicasOptions,
} from "../support/quota-replicas.ts";
import { describeReal, stateOf } from "../support/real-parts.ts";
import { RedisProcess } from "../support/redis-process.ts";
import { issueCertificate } from "../support/test-certificates.ts";

const isWritingDocs = process.env.SLUICE_WRITE_DOCS === "1";
const AWAY_MS = isWritingDocs ? 60_000 : 3_000;
const TEN_MINUTES = 600_000;
const LIMIT = 100;
/** Of the slowest replica to hear that Redis is back. */
const BACK_MS = 15_000;

let redis: RedisProcess;
let fleet: QuotaReplicas;
let wire: FaultProxy | undefined;
const rows: (readonly [what: string, expected: string, observed: string])[] = [];
afterEach(async () => {
  await fleet?.stop();
  await wire?.close();
  wire = undefined;
  await redis?.stop();
});
afterAll(() => {
  if (rows.length < 7) return;
  publishSection("replicas.md", "Quotas across replicas", documentOf(rows));
});

async function start(
  stores: readonly object[],
  { maxSessionsPerUser = LIMIT, ...more }: Partial<QuotaReplicasOptions> = {},
): Promise<readonly QuotaReplica[]> {
  const replicas = stores.map((store) => ({
    store: { url: redis.url, lease: "8s", commandTimeout: "2s", ...store },
  }));
  fleet = await QuotaReplicas.start({ replicas, maxSessionsPerUser, ...more });
  return fleet.replicas;
}

const isUp = (replica: QuotaReplica) => metricOf(replica, "sluice_quota_store_up");
const leases = () => Number(redis.cli("ZCARD", "{sluice}:user:tester"));
const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

describeReal("redis", "quotas of three replicas in Redis", () => {
  it("are exact: of 1,000 attempts as many begin as may, with clocks 10 minutes apart and with workers", async () => {
    redis = await RedisProcess.start();
    const store = { url: redis.url, onFailure: "deny", commandTimeout: "10s" };
    fleet = await QuotaReplicas.start({
      replicas: [
        { store, clockShiftMs: TEN_MINUTES },
        { store, clockShiftMs: -TEN_MINUTES },
        { store, configuration: { workers: 2 } },
      ],
      maxSessionsPerUser: LIMIT,
    });
    const first = byCode(await fleet.attempt(1_000));
    expect(first).toEqual({ 101: LIMIT, 429: 900 });
    expect(leases()).toBe(LIMIT);
    const ended = Math.min(10, ...fleet.replicas.map(({ sessions }) => sessions.length));
    for (const replica of fleet.replicas) await fleet.end(replica, ended);
    await expect.poll(leases).toBe(LIMIT - 3 * ended);
    const second = byCode(await fleet.attempt(300));
    expect(second).toEqual({ 101: 3 * ended, 429: 300 - 3 * ended });
    rows.push([
      "1,000 attempts through 3 replicas, clocks +10 min, -10 min and right, the third with 2 workers; limit 100",
      "100 sessions, 900 x 429",
      `${first[101]} sessions, ${first[429]} x 429`,
    ]);
    rows.push([
      `${3 * ended} of them ended, 300 attempts more`,
      `${3 * ended} sessions`,
      `${second[101]} sessions, ${second[429]} x 429`,
    ]);
  });

  it("are free again a lease time after a replica was killed with -9, and the others' stay", async () => {
    redis = await RedisProcess.start();
    const [one, ...others] = await start([{}, {}, {}], {
      maxSessionsPerUser: 30,
    });
    expect(byCode(await fleet.attempt(100))).toEqual({ 101: 30, 429: 70 });
    const lost = one?.sessions.length ?? 0;
    expect(lost).toBeGreaterThan(0);
    one?.gateway.child.kill("SIGKILL");
    const killedMs = performance.now();
    let begun = 0;
    await expect
      .poll(
        async () => {
          begun += byCode(await fleet.attempt(lost, { through: others, atOnce: 5 }))[101] ?? 0;
          return begun;
        },
        { timeout: BACK_MS, interval: 100 },
      )
      .toBe(lost);
    const seconds = (performance.now() - killedMs) / 1_000;
    expect(byCode(await fleet.attempt(30, { through: others }))).toEqual({ 429: 30 });
    rows.push([
      "a replica killed with -9; leases of 8 s",
      "its places free after 8 s at most, no others",
      `its ${lost} places free after ${seconds.toFixed(1)} s, then only 429`,
    ]);
  });

  it("while Redis is stopped: counted by each replica, or refused, as configured; sessions go on; exact when it is back", async () => {
    redis = await RedisProcess.start();
    const [allowing, other, denying] = await start([{}, {}, { onFailure: "deny" }], {
      maxSessionsPerUser: 20,
    });
    if (allowing === undefined || other === undefined || denying === undefined)
      throw new Error("not started");
    expect(byCode(await fleet.attempt(100))).toEqual({ 101: 20, 429: 80 });
    const before = allowing.sessions.length;
    await redis.kill();
    await expect.poll(() => isUp(allowing)).toBe("0");
    await expect.poll(() => isUp(denying)).toBe("0");
    const denied = await fleet.attempt(200, { through: [denying] });
    expect(byCode(denied)).toEqual({ 503: 200 });
    const allowed = byCode(await fleet.attempt(200, { through: [allowing] }));
    expect(allowed).toEqual({ 101: 20 - before, 429: 180 + before });
    expect(await (await fetch(`${denying.gateway.adminUrl}/readyz?verbose`)).text()).toMatch(
      /\[\+\]quotas ok.*the quota store is away: new sessions are refused/,
    );
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    expect(byCode(await fleet.attempt(20, { through: [denying] }))).toEqual({ 503: 20 });
    for (const { sessions } of fleet.replicas)
      for (const socket of sessions) expect(socket.destroyed).toBe(false);
    await redis.start();
    for (const replica of fleet.replicas)
      await expect.poll(() => isUp(replica), { timeout: BACK_MS }).toBe("1");
    const held = fleet.replicas.reduce((sum, { sessions }) => sum + sessions.length, 0);
    // It came back empty.
    expect(leases()).toBe(held);
    await fleet.end(allowing, allowing.sessions.length);
    await expect.poll(leases).toBe(held - 20);
    const after = byCode(await fleet.attempt(100));
    expect(after).toEqual({ 101: 40 - held, 429: 60 + held });
    rows.push(
      [
        `Redis killed for ${AWAY_MS / 1_000} s, \`onFailure: allow\`, 200 attempts; limit 20`,
        "each replica up to 20 of its own",
        `${before} before, ${allowed[101]} more, ${allowed[429]} x 429`,
      ],
      [
        "the same with `onFailure: deny`",
        "200 x 503, sessions go on",
        `${byCode(denied)[503]} x 503, median ${median(denied.map(({ ms }) => ms)).toFixed(0)} ms`,
      ],
      [
        "Redis back, and empty",
        "all sessions that run count again, the limit holds",
        `${held} leases of ${held} sessions; then as many as fit`,
      ],
    );
  });

  it("count Redis as away when it stands still or is slow: one command's time, then at once", async () => {
    redis = await RedisProcess.start();
    wire = await startFaultProxy(redis.port, {
      cutAfterBytes: Number.POSITIVE_INFINITY,
      maxCuts: 0,
      delayMs: 400,
    });
    const impatient = { onFailure: "deny", commandTimeout: "250ms" };
    const slow = { url: `redis://127.0.0.1:${wire.port}`, ...impatient };
    const [one, other, behindSlow] = await start([impatient, {}, slow]);
    if (one === undefined || other === undefined || behindSlow === undefined) throw new Error("not started");
    expect(byCode(await fleet.attempt(10, { through: [behindSlow] }))).toEqual({ 503: 10 });
    redis.signal("SIGSTOP");
    const stopped = await fleet.attempt(100, { through: [one] });
    redis.signal("SIGCONT");
    expect(byCode(stopped)).toEqual({ 503: 100 });
    await expect.poll(() => isUp(one), { timeout: BACK_MS }).toBe("1");
    const slowest = Math.max(...stopped.map(({ ms }) => ms));
    expect(slowest).toBeLessThan(5_000);
    rows.push([
      "Redis stopped with SIGSTOP, 100 attempts, `deny`; another replica's answers held back by 400 ms",
      "503 after `commandTimeout` (here 250 ms), then at once",
      `503; the slowest ${slowest.toFixed(0)} ms, median ${median(stopped.map(({ ms }) => ms)).toFixed(0)} ms`,
    ]);
  });

  it("reach Redis by TLS with a password, which no log has; a wrong one is no more than an absent store", async () => {
    const authority = await issueCertificate({ commonName: "the store's authority" });
    const tls = await issueCertificate({ commonName: "store" }, authority, { addresses: ["127.0.0.1"] });
    const password = "the-password-of-the-store";
    redis = await RedisProcess.start({ password, tls });
    const [right, wrong, distrusting] = await start(
      [{ passwordFile: "password" }, { passwordFile: "wrong" }, { certificateAuthorityFile: undefined }].map(
        (store) => ({ certificateAuthorityFile: "ca.crt", ...store }),
      ),
      {
        files: { password: `${password}\n`, wrong: "another-password", "ca.crt": authority.cert },
        maxSessionsPerUser: 1,
      },
    );
    if (right === undefined || wrong === undefined || distrusting === undefined)
      throw new Error("not started");
    expect(await Promise.all([right, wrong, distrusting].map(isUp))).toEqual(["1", "0", "0"]);
    expect(byCode(await fleet.attempt(2, { through: [right] }))).toEqual({ 101: 1, 429: 1 });
    const problemOf = ({ gateway }: QuotaReplica) =>
      gateway.logLines().find(({ msg }) => msg.startsWith("the quota store is away"))?.problem;
    expect(problemOf(wrong)).toMatch(/WRONGPASS|NOAUTH/);
    expect(problemOf(distrusting)).toMatch(/certificate/);
    for (const { gateway } of fleet.replicas)
      expect(gateway.log()).not.toMatch(/the-password|another-password/);
  });
});

function documentOf(measured: typeof rows): string {
  return `Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/real/quota-store\`: processes and Redis ${stateOf("redis").versions[0]} on one
busy machine, 50 attempts at once.

${evidenceTable(["what", "expected", "observed"], measured)}`;
}
