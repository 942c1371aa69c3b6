// kube-load's tests with the product's own client library, for machines without Go. It has the same
// flags and the same output.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { SpdyDialer, SpdyExecutor, Target, TunnelDialer, WebSocketExecutor } from "@sluice/client";

const flags = {
  n: "1",
  conc: "16",
  chunk: "32768",
  rounds: "5000",
  hold: "3s",
  within: "0s",
  every: "0",
  bytes: "0",
};
for (const [index, name] of process.argv.entries()) {
  if (index > 1 && name.startsWith("-")) flags[name.slice(1)] = process.argv[index + 1] ?? "";
}
const number = Object.fromEntries(Object.entries(flags).map(([name, text]) => [name, Number(text)]));
const milliseconds = (text) =>
  text.endsWith("ms") ? Number(text.slice(0, -2)) : Number(text.slice(0, -1)) * 1000;
const proxies = (flags["proxy-pid"] ?? "").split(",").filter((pid) => pid !== "");
const isForward = flags.via.startsWith("pf-");
const target = new Target({
  url: flags.url,
  tls: { insecureSkipVerify: true },
  proxy: "none",
  headers: () => [["Authorization", `Bearer ${flags.token}`]],
});
const say = (result) => console.log(JSON.stringify({ ...result, via: flags.via, test: flags.test }));

// ---- accounting

const proc = (pid, file) => readFileSync(`/proc/${pid}/${file}`, "utf8");
const cpuSeconds = () =>
  proxies.reduce((sum, pid) => {
    const stat = proc(pid, "stat");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);
const residentKib = () =>
  proxies.reduce((sum, pid) => sum + Number(/^VmRSS:\s+(\d+)/m.exec(proc(pid, "status"))?.[1] ?? 0), 0);
const openFiles = () => {
  const links = proxies.flatMap((pid) =>
    readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        return "";
      }
    }),
  );
  return { files: links.length, sockets: links.filter((link) => link.startsWith("socket:")).length };
};

// ---- sessions

const dialer = isForward
  ? new (flags.via === "pf-ws" ? TunnelDialer : SpdyDialer)(target, "/portforward")
  : undefined;

/**
 * Runs a command, or connects to the port that does the same, with this input (absent: none).
 * Passes on the output.
 */
async function session(command, port, input, onData, signal) {
  const output = new Writable({ write: (part, _encoding, done) => onData(part, done) });
  if (dialer === undefined) {
    const path = ({ stdin }) =>
      `/exec?command=${encodeURIComponent(command)}&stdout=true${stdin ? "&stdin=true" : ""}`;
    const executor =
      flags.via === "spdy" ? new SpdyExecutor(target, path) : new WebSocketExecutor(target, path);
    const { exitCode } = await executor.stream({ stdin: input, stdout: output, signal });
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}`);
    return;
  }
  const connection = await dialer.dial(signal);
  await forwarded(connection, port, input, output);
  connection.close();
}

async function forwarded(connection, port, input, output) {
  const stream = connection.openStream(port);
  if (input === undefined) stream.end();
  else input.pipe(stream);
  stream.pipe(output);
  await finished(stream);
  await finished(output);
}

const letters = Buffer.alloc(number.chunk, "z");
function pump(left) {
  return new Readable({
    highWaterMark: Math.max(letters.length, 128 * 1024),
    read() {
      if (left === 0) return void this.push(null);
      const part = left >= letters.length ? letters : letters.subarray(0, left);
      left -= part.length;
      this.push(part);
    },
  });
}

const atOnce = (count, what) => Promise.all(Array.from({ length: count }, (_, index) => what(index)));

// ---- tests

let flowing = 0;
async function bulk() {
  if ("window" in flags) return steady();
  const each = number.bytes / number.n;
  const startedAt = performance.now();
  const before = cpuSeconds();
  await atOnce(number.n, async () => {
    const sent = flags.test === "upload" ? each : flags.test === "both" ? each / 2 : 0;
    const expected = flags.test === "download" ? each : each / 2;
    const port = { download: (number.chunk === 64 ? 10_000 : 20_000) + each / 2 ** 20, upload: 9, both: 7 }[
      flags.test
    ];
    const command = { download: `source=${each}:${number.chunk}`, upload: "sink", both: "echo" }[flags.test];
    let received = 0;
    let said = "";
    await session(command, port, sent === 0 ? undefined : pump(sent), (part, done) => {
      if (received === 0 && ++flowing === number.n && "announce" in flags)
        say({ progress: "every session receives" });
      received += part.length;
      if (flags.test === "upload") said += part;
      done();
    });
    if (flags.test === "upload") received = Number(said) === each ? expected : -1;
    if (received !== expected) throw new Error(`${received} of ${expected} bytes arrived ${said}`);
  });
  const gib = number.bytes / 2 ** 30;
  const cpu = cpuSeconds() - before;
  return {
    mib_per_s: (gib * 1024) / ((performance.now() - startedAt) / 1000),
    proxy_cpu_s_per_gib: cpu / gib,
    proxy_cpu_us_per_write: (cpu / (number.bytes / number.chunk)) * 1e6,
  };
}

/** Downloads over sessions that never end, and measures for -window while all of them run. */
async function steady() {
  let received = 0;
  const all = atOnce(number.n, () => {
    let isNew = true;
    return session(`source=${2 ** 50}:${number.chunk}`, 0, undefined, (part, done) => {
      if (isNew) flowing += 1;
      isNew = false;
      received += part.length;
      done();
    });
  });
  const during = (what) => Promise.race([what, all.then(() => Promise.reject(new Error("sessions ended")))]);
  while (flowing < number.n) await during(delay(10));
  await during(delay(2000));
  const before = [performance.now(), cpuSeconds(), received];
  await during(delay(milliseconds(flags.window)));
  const gib = (received - before[2]) / 2 ** 30;
  return {
    mib_per_s: (gib * 1024) / ((performance.now() - before[0]) / 1000),
    proxy_cpu_s_per_gib: (cpuSeconds() - before[1]) / gib,
  };
}

/** Opens an echo session. Resolves when the first byte has returned. */
async function openEcho() {
  const input = new Readable({ read() {} });
  let heard = () => {};
  const ended = session("echo", 7, input, (_part, done) => {
    heard();
    done();
  });
  ended.catch(() => {});
  const roundTrip = () => {
    const back = new Promise((resolve) => {
      heard = resolve;
    });
    input.push(Buffer.of(1));
    return Promise.race([back, ended.then(() => Promise.reject(new Error("the session ended")))]);
  };
  await roundTrip();
  const close = () => {
    input.push(null);
    return ended;
  };
  return { roundTrip, close };
}

async function latency() {
  const echo = await openEcho();
  for (let round = 0; round < 200; round++) await echo.roundTrip();
  const times = [];
  const startedAt = performance.now();
  const before = cpuSeconds();
  const within = milliseconds(flags.within);
  while (times.length < number.rounds && (within === 0 || performance.now() - startedAt < within)) {
    const sentAt = performance.now();
    await echo.roundTrip();
    times.push((performance.now() - sentAt) * 1000);
  }
  const cpu = cpuSeconds() - before;
  await echo.close();
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
  return {
    p50_us: at(0.5),
    p99_us: at(0.99),
    p999_us: at(0.999),
    proxy_cpu_us_each: (cpu / times.length) * 1e6,
  };
}

/** Calls `what` `count` times, `-conc` at once. */
async function repeated(count, what) {
  let left = count;
  await atOnce(number.conc, async () => {
    while (left-- > 0) await what();
  });
}

async function counted(count, what, unit, scale) {
  const startedAt = performance.now();
  const before = cpuSeconds();
  const more = await what();
  const cpu = cpuSeconds() - before;
  return {
    count,
    per_s: count / ((performance.now() - startedAt) / 1000),
    [unit]: (cpu / count) * scale,
    ...more,
  };
}

const setUpOne = async () =>
  isForward ? (await openEcho()).close() : session("exit=0", 0, undefined, (_part, done) => done());
const setup = () => counted(number.n, () => repeated(number.n, setUpOne), "proxy_cpu_ms_each", 1e3);

async function requests() {
  const connection = await dialer.dial();
  const one = async () => {
    let received = 0;
    const output = new Writable({
      write: (part, _encoding, done) => {
        received += part.length;
        done();
      },
    });
    await forwarded(connection, 7, Readable.from([Buffer.of(1)]), output);
    if (received !== 1) throw new Error(`${received} bytes echoed`);
  };
  const result = await counted(
    number.n,
    async () => {
      const every = number.every || number.n;
      const points = [];
      for (let done = 0; done < number.n; done += every) {
        await repeated(Math.min(every, number.n - done), one);
        points.push({ requests: Math.min(number.n, done + every), rss_kib: residentKib(), ...openFiles() });
      }
      return number.every > 0 ? { points } : {};
    },
    "proxy_cpu_us_each",
    1e6,
  );
  connection.close();
  return result;
}

async function idle() {
  const before = residentKib();
  const sessions = [];
  await repeated(number.n, async () => sessions.push(await openEcho()));
  await delay(milliseconds(flags.hold));
  const held = residentKib();
  await atOnce(sessions.length, (index) => sessions[index].roundTrip());
  await atOnce(sessions.length, (index) => sessions[index].close());
  return { kib_per_session: (held - before) / number.n };
}

async function stall() {
  const before = residentKib();
  const abort = new AbortController();
  // The first part is never consumed.
  const stalled = atOnce(number.n, () =>
    session(`source=${2 ** 32}`, 24_096, undefined, () => {}, abort.signal),
  );
  stalled.catch(() => {});
  await delay(milliseconds(flags.hold));
  const held = residentKib();
  abort.abort();
  return { kib_per_session: (held - before) / number.n };
}

const tests = { download: bulk, upload: bulk, both: bulk, latency, setup, requests, idle, stall };
try {
  say(await tests[flags.test]());
  process.exit();
} catch (error) {
  say({ error: error.message });
  process.exit(1);
}
