// packages/lab/conformance: cases that test whether an endpoint carries Kubernetes' streams
// correctly, their runner and reports

import { setMaxListeners } from "node:events";
import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { CaseLab } from "./case-lab.ts";
import type { ConformanceCase } from "./conformance-case.ts";
import type { CaseReport, ConformanceReport } from "./conformance-report.ts";
import type { Endpoint } from "./endpoint.ts";
import { SkippedCase } from "./judge.ts";
import type { LabSettings } from "./lab-settings.ts";
import { type Survey, surveyEndpoint } from "./survey.ts";

const defaultLabSettings: LabSettings = {
  dialTimeoutMs: 20_000,
  stepTimeoutMs: 20_000,
  caseTimeoutMs: 120_000,
  bulkBytes: 64 * 1024 * 1024,
  slowBytes: 16 * 1024 * 1024,
  slowRate: 4 * 1024 * 1024,
  stallMs: 3_000,
  heartbeatMs: 12_000,
  idleScale: 1,
  parallelSessions: 20,
  mayAttachInput: false,
  budgetMs: Number.POSITIVE_INFINITY,
};

const MASK = "[credentials]";
const CREDENTIAL_HEADERS = ["authorization", "cookie", "proxy-authorization"];
/** A server may cut a credential short, so text that starts like a credential is masked, too. */
const TELLING_CHARACTERS = 16;
/** Masking shorter text would hide ordinary words. */
const MIN_CHARACTERS = 4;
/** The characters of tokens, Base64 and cookies. */
const REST = /^[\w.~+/=%-]+/;

/**
 * Removes the endpoint's credentials from server output, because servers echo headers and users
 * share reports.
 */
class CredentialMask {
  readonly #secrets = new Set<string>();

  /** Collects the credentials in a request's headers, in every form in which they are sent. */
  learn(headers: HeaderList): void {
    for (const [name, value] of headers) {
      if (!CREDENTIAL_HEADERS.includes(name.toLowerCase())) continue;
      const credential = value.slice(value.indexOf(" ") + 1);
      const decoded = /^basic /i.test(value) ? Buffer.from(credential, "base64").toString() : "";
      const password = decoded.slice(decoded.indexOf(":") + 1);
      // Browsers send a token in this form, as a subprotocol.
      const subprotocol = Buffer.from(credential).toString("base64url");
      for (const secret of [credential, password, subprotocol])
        if (secret.length >= MIN_CHARACTERS) this.#secrets.add(secret);
    }
  }

  masked(text: string): string {
    return [...this.#secrets].reduce(withoutSecret, text);
  }
}

function withoutSecret(text: string, secret: string): string {
  const [before = "", ...rest] = text.split(secret.slice(0, TELLING_CHARACTERS));
  const isWhole = secret.length <= TELLING_CHARACTERS;
  return before + rest.map((part) => MASK + (isWhole ? part : part.replace(REST, ""))).join("");
}

const INTERRUPTED = "the run was interrupted";
const OUT_OF_TIME = "the time of a quick run was over (without --quick it is tried)";

interface RunOptions {
  readonly cases: readonly ConformanceCase[];
  readonly settings?: Partial<LabSettings> | undefined;
  /** Ends the run and skips the current case and all later ones. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called before the waiting cases run together, with their number and the longest silence in
   * milliseconds.
   */
  readonly onWait?: ((cases: number, longestMs: number) => void) | undefined;
  /** Called after each case. */
  readonly onCase?: ((report: CaseReport, done: number, total: number) => void) | undefined;
}

/** Runs the cases in sequence. A case that fails, hangs or throws does not affect the next one. */
export async function runConformance(
  endpoint: Endpoint,
  { cases, settings: changed, signal = new AbortController().signal, onCase, onWait }: RunOptions,
): Promise<ConformanceReport> {
  const settings = { ...defaultLabSettings, ...changed };
  const startedAt = new Date().toISOString();
  const startedMs = performance.now();
  const surveyLab = new CaseLab(endpoint, settings, signal);
  const survey = await surveyEndpoint(surveyLab);
  surveyLab.close();
  const reports: CaseReport[] = [];
  const interrupted = interruptionOf(signal);
  const endsAtMs = startedMs + settings.budgetMs;
  const mask = new CredentialMask();
  const context = { endpoint, settings, survey, signal, interrupted, endsAtMs, mask };
  const run = async (one: ConformanceCase): Promise<void> => {
    const report = await runCase(one, context);
    reports.push(report);
    onCase?.(report, reports.length, cases.length);
  };
  const active = cases.filter(({ isPassive }) => isPassive !== true);
  const isBounded = Number.isFinite(settings.budgetMs);
  for (const one of isBounded ? inTurn(active) : active) await run(one);
  const waiting = cases.filter(({ isPassive }) => isPassive);
  if (waiting.length > 0 && !signal.aborted) onWait?.(waiting.length, longestWaitMs(waiting, settings));
  await Promise.all(waiting.map(run));
  reports.sort((one, other) => orderOf(one, cases) - orderOf(other, cases));
  const counts: Record<CaseReport["verdict"], number> = { passed: 0, failed: 0, skipped: 0 };
  for (const { verdict } of reports) counts[verdict] += 1;
  const durationMs = Math.round(performance.now() - startedMs);
  const { name, profile } = endpoint;
  return { version: 1, endpoint: name, profile, startedAt, durationMs, counts, cases: reports };
}

/**
 * Takes the first case of each group, then the second of each, so that a time limit cuts all groups
 * alike.
 */
function inTurn(cases: readonly ConformanceCase[]): ConformanceCase[] {
  const seen = new Map<string, number>();
  const ranked = cases.map((one) => {
    const rank = seen.get(one.group) ?? 0;
    seen.set(one.group, rank + 1);
    return { one, rank };
  });
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ one }) => one);
}

interface CaseContext {
  readonly endpoint: Endpoint;
  readonly settings: LabSettings;
  readonly survey: Survey;
  readonly signal: AbortSignal;
  /** Rejects when the signal aborts. */
  readonly interrupted: Promise<never>;
  readonly endsAtMs: number;
  readonly mask: CredentialMask;
}

/** Their silences end this long before their time limit. */
const AFTER_SILENCE_MS = 30_000;

function longestWaitMs(waiting: readonly ConformanceCase[], settings: LabSettings): number {
  const silences = waiting.map(({ timeoutMs = 0 }) => (timeoutMs - AFTER_SILENCE_MS) * settings.idleScale);
  return Math.max(settings.heartbeatMs, ...silences);
}

/** Called before and after a case, because credentials may be renewed during it. */
async function learnCredentials({ endpoint, mask }: CaseContext): Promise<void> {
  mask.learn(await endpoint.target.headers().catch(() => []));
}

async function runCase(one: ConformanceCase, context: CaseContext): Promise<CaseReport> {
  const { endpoint, settings, signal, interrupted, mask } = context;
  const { id, group, requirement, why, source, severity } = one;
  const startedMs = performance.now();
  await learnCredentials(context);
  const report = async (verdict: CaseReport["verdict"], note: string | undefined): Promise<CaseReport> => {
    await learnCredentials(context);
    const durationMs = Math.round(performance.now() - startedMs);
    const base = { id, group, requirement, why, source, severity, verdict, durationMs };
    return note === undefined ? base : { ...base, note: mask.masked(endpoint.mask?.(note) ?? note) };
  };
  // The waiting cases run together at the end.
  const isLate = one.isPassive !== true && performance.now() > context.endsAtMs;
  const obstacle = signal.aborted ? INTERRUPTED : isLate ? OUT_OF_TIME : obstacleOf(one, context);
  if (obstacle !== undefined) return await report("skipped", obstacle);
  const ended = new AbortController();
  // Each dial adds a listener, and a case may dial many times.
  setMaxListeners(0, ended.signal);
  const lab = new CaseLab(endpoint, settings, ended.signal);
  try {
    const finished = one.run(lab);
    finished.catch(() => {});
    await lab.within(
      "the case",
      Promise.race([finished, interrupted]),
      one.timeoutMs ?? settings.caseTimeoutMs,
    );
    return await report("passed", lab.note);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return await report(error instanceof SkippedCase ? "skipped" : "failed", text);
  } finally {
    ended.abort();
    lab.close();
  }
}

function interruptionOf(signal: AbortSignal): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(new SkippedCase(INTERRUPTED)), { once: true });
  });
  interrupted.catch(() => {});
  return interrupted;
}

/** Why the case cannot run, or why it would only repeat another case's result. */
function obstacleOf(
  { needs, needsEcho, transport, profiles }: ConformanceCase,
  { endpoint, settings, survey: { transports, programs, echoProblem } }: CaseContext,
): string | undefined {
  if (profiles?.includes(endpoint.profile) === false) return `it is not asked of a ${endpoint.profile}`;
  const refusal = transport === undefined ? undefined : transports[transport];
  if (refusal !== undefined) return `${transport} is refused: ${refusal}`;
  if (needsEcho && settings.echoPort === undefined)
    return "no port of the pod is known to echo (--echo-port)";
  if (needsEcho && echoProblem !== undefined) return `port ${settings.echoPort} of the pod: ${echoProblem}`;
  if (needs.length === 0) return undefined;
  if (programs === undefined) return "no command could be run in the container";
  const missing = needs.filter((name) => !programs.has(name));
  return missing.length === 0 ? undefined : `the container has no ${missing.join(", ")}`;
}

function orderOf({ id }: CaseReport, cases: readonly ConformanceCase[]): number {
  return cases.findIndex((one) => one.id === id);
}
