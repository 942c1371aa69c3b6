import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Target } from "../../../packages/client/src/index.ts";
import type { ConformanceCase } from "../../../packages/lab/src/conformance/conformance-case.ts";
import {
  apiServerEndpoint,
  type Endpoint,
  runtimeEndpoint,
} from "../../../packages/lab/src/conformance/endpoint.ts";
import { SkippedCase, Violation } from "../../../packages/lab/src/conformance/judge.ts";
import { MAX_KEPT_BYTES, RecordedOutput } from "../../../packages/lab/src/conformance/recorded-output.ts";
import { runConformance } from "../../../packages/lab/src/conformance/run-cases.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Accepts connections and never answers. */
async function silentEndpoint(): Promise<Endpoint> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const target = new Target({ url: `http://127.0.0.1:${port}`, proxy: "none" });
  return apiServerEndpoint(target, { namespace: "default", pod: "web" });
}

const caseOf = (
  id: string,
  run: ConformanceCase["run"],
  changed: Partial<ConformanceCase> = {},
): ConformanceCase => ({
  ...{
    id,
    group: "exec",
    requirement: "It works.",
    why: "It matters.",
    source: "a test",
    severity: "must",
    needs: [],
  },
  run,
  ...changed,
});

const settings = { dialTimeoutMs: 100, stepTimeoutMs: 100, caseTimeoutMs: 300 };

describe("a run of cases", () => {
  it("reports no credential that the server repeats, whole or cut", async () => {
    const token = `eyJhbGciOiJSUzI1NiJ9.${"payload".repeat(9)}.sig-na_ture`;
    const { target } = await silentEndpoint();
    const withToken = new Target({
      url: target.url,
      proxy: "none",
      headers: () => [
        ["Authorization", `Bearer ${token}`],
        ["Cookie", "session=3f9a"],
      ],
    });
    const endpoint = apiServerEndpoint(withToken, { namespace: "default", pod: "web" });
    const echoes = [token, token.slice(0, 40), Buffer.from(token).toString("base64url"), "session=3f9a"];
    const cases = echoes.map((echo, at) =>
      caseOf(`exec/echo-${at}`, () => Promise.reject(new Violation(`answered: Bearer ${echo}, denied`))),
    );
    const report = await runConformance(endpoint, { cases, settings });
    expect(report.cases.map(({ note }) => note)).toEqual(
      echoes.map(() => "answered: Bearer [credentials], denied"),
    );
  });

  it("goes on after a case that fails, throws, hangs or leaves things open", async () => {
    const closed: string[] = [];
    const cases = [
      caseOf("exec/violates", () => Promise.reject(new Violation("lost a byte"))),
      caseOf("exec/throws", () => {
        throw new TypeError("broken");
      }),
      caseOf("exec/hangs", (lab) => {
        lab.onClose(() => closed.push("hangs"));
        return new Promise(() => {});
      }),
      caseOf("exec/skips", () => Promise.reject(new SkippedCase("not offered"))),
      caseOf("exec/needs-sh", async () => {}, { needs: ["sh"] }),
      caseOf("exec/needs-v5", async () => {}, { transport: "websocket-v5" }),
      caseOf("exec/measures", async (lab) => {
        lab.note = "3 ms";
      }),
    ];
    const seen: string[] = [];
    const onCase = ({ id }: { id: string }, done: number, total: number) =>
      seen.push(`${done}/${total} ${id}`);
    const report = await runConformance(await silentEndpoint(), { cases, settings, onCase });
    expect(report.cases.map(({ id, verdict, note }) => `${id} ${verdict}: ${note}`)).toEqual([
      "exec/violates failed: lost a byte",
      "exec/throws failed: broken",
      "exec/hangs failed: the case: not within 0.3 s",
      "exec/skips skipped: not offered",
      "exec/needs-sh skipped: no command could be run in the container",
      expect.stringMatching(
        /^exec\/needs-v5 skipped: websocket-v5 is refused: .*timeout awaiting response headers/,
      ),
      "exec/measures passed: 3 ms",
    ]);
    expect(report.counts).toEqual({ passed: 1, failed: 3, skipped: 3 });
    expect(closed).toEqual(["hangs"]);
    expect(seen).toHaveLength(7);
    expect(seen.at(-1)).toBe("7/7 exec/measures");
  });

  it("shows no token of a streaming URL, and skips what is not asked of a runtime", async () => {
    const target = new Target({ url: "http://127.0.0.1:1", proxy: "none" });
    const endpoint = runtimeEndpoint("a runtime", target, async () => new URL("http://x/exec/s3cret"));
    const cases = [
      caseOf("errors/quotes", () =>
        Promise.reject(new Violation("404: no such path: http://127.0.0.1:9/cri/exec/AbC-d_3?x=1")),
      ),
      caseOf("errors/unknown", async () => {}, { profiles: ["api-server", "kubelet"] }),
    ];
    const report = await runConformance(endpoint, { cases, settings });
    expect(report.cases.map(({ note }) => note)).toEqual([
      "404: no such path: http://127.0.0.1:9/cri/exec/...?x=1",
      "it is not asked of a runtime",
    ]);
  });

  it("skips what is left when it is interrupted, and closes what is open", async () => {
    const interruption = new AbortController();
    let isClosed = false;
    const cases = [
      caseOf("exec/open", (lab) => {
        lab.onClose(() => {
          isClosed = true;
        });
        interruption.abort();
        return new Promise(() => {});
      }),
      caseOf("exec/next", async () => {}),
    ];
    const report = await runConformance(await silentEndpoint(), {
      cases,
      settings,
      signal: interruption.signal,
    });
    expect(report.cases.map(({ verdict, note }) => `${verdict}: ${note}`)).toEqual(
      cases.map(() => "skipped: the run was interrupted"),
    );
    expect(isClosed).toBe(true);
  });

  it("runs cases that only wait at the same time, and reports them in order", async () => {
    let running = 0;
    let most = 0;
    const waits = async (): Promise<void> => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const cases = ["exec/a", "exec/b", "exec/c"].map((id) =>
      caseOf(id, waits, { isPassive: id !== "exec/b" }),
    );
    const report = await runConformance(await silentEndpoint(), { cases, settings });
    expect(report.cases.map(({ id }) => id)).toEqual(["exec/a", "exec/b", "exec/c"]);
    expect(most).toBe(2);
  });
});

describe("a run whose time is bounded", () => {
  it("tries each group in turn, skips what has not begun by then, and still those that wait", async () => {
    const ran: string[] = [];
    const cases = ["exec/a", "exec/b", "cp/a", "idle/a", "cost/a", "cost/b"].map((id) =>
      caseOf(id, async () => void ran.push(id), {
        group: id.slice(0, id.indexOf("/")) as ConformanceCase["group"],
        isPassive: id.startsWith("idle"),
      }),
    );
    const all = await runConformance(await silentEndpoint(), {
      cases,
      settings: { ...settings, budgetMs: 60_000 },
    });
    expect(ran).toEqual(["exec/a", "cp/a", "cost/a", "exec/b", "cost/b", "idle/a"]);
    expect(all.cases.map(({ id }) => id)).toEqual(cases.map(({ id }) => id));
    const none = await runConformance(await silentEndpoint(), {
      cases,
      settings: { ...settings, budgetMs: 0 },
    });
    expect(none.cases.map(({ verdict }) => verdict)).toEqual([
      ...["skipped", "skipped", "skipped", "passed", "skipped", "skipped"],
    ]);
  });
});

describe("a recorded output", () => {
  it("keeps the first bytes, and counts, hashes and checks all", () => {
    const zeros = {
      firstWrong: (offset: number, part: Uint8Array) => {
        const at = part.findIndex((byte) => byte !== 0);
        return at === -1 ? -1 : offset + at;
      },
    };
    const output = new RecordedOutput(zeros);
    const part = Buffer.alloc(MAX_KEPT_BYTES - 1);
    output.add(part);
    output.add(Buffer.from([0, 0, 7]));
    expect(output.bytes.byteLength).toBe(MAX_KEPT_BYTES);
    expect(output.byteLength).toBe(MAX_KEPT_BYTES + 2);
    expect(output.firstWrong).toBe(MAX_KEPT_BYTES + 1);
    expect(output.sha256).toHaveLength(64);
  });
});
