import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { genericError } from "../../../packages/client/src/api/status.ts";
import { statusBody } from "../../../packages/client/src/api/status-body.ts";
import type {
  RefusedUpgrade,
  SwitchedUpgrade,
  UpgradeResponse,
} from "../../../packages/client/src/http/upgrade/upgrade-request.ts";
import { UpstreamError } from "../../../packages/client/src/net/upstream-error.ts";
import { HandshakeRefusal } from "../../../src/sessions/client-handshake.ts";
import type { Admission, Fallback, Leg, Refusal } from "../../../src/sessions/leg.ts";
import { negotiateUpgrade } from "../../../src/sessions/negotiate-upgrade.ts";
import { makePlan, type Plan } from "../../../src/sessions/plan.ts";
import { parseStreamingRequest } from "../../../src/sessions/streaming-request.ts";

const PATH = { namespace: "default", pod: "web", subresource: "exec" } as const;
const FIRST: Plan = makePlan("pass-through", "node-speaks-websocket");
const NEXT: Plan = makePlan("translate", "node-failed-at-websocket");
const HANDSHAKE = { protocol: "", switchTo: () => [] };

function admissionOf(isAnswerable = true): Admission {
  const request = parseStreamingRequest(PATH, {
    method: "GET",
    url: new URL("http://gateway/api/v1/namespaces/default/pods/web/exec?command=true&stdout=1"),
    headers: [
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
      ["Sec-WebSocket-Version", isAnswerable ? "13" : "8"],
      ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
      ["Sec-WebSocket-Protocol", "v5.channel.k8s.io"],
    ],
    remoteAddress: "127.0.0.1",
  });
  const user = { name: "jane", uid: "", groups: [], extra: {} };
  return { user, request, node: "node-1", plan: FIRST, policy: { rule: undefined, reason: "" } };
}

function refusing(status: number, body: string): RefusedUpgrade {
  const answer = { kind: "refused", status, statusMessage: "No", rawHeaders: [] } as const;
  return { ...answer, body: Readable.from([Buffer.from(body)], { objectMode: false }) };
}

function switching(): SwitchedUpgrade {
  const socket = Object.assign(new PassThrough(), { unref: () => socket }) as SwitchedUpgrade["socket"];
  const head = Buffer.alloc(0);
  return { kind: "switched", status: 101, statusMessage: "Yes", rawHeaders: [], socket, head };
}

interface Asked {
  readonly leg: Leg;
  readonly plans: Plan[];
  /** Refusals behind which the next plan was taken. */
  readonly fellBack: Refusal[];
}

function legThat(
  answers: readonly (UpgradeResponse | Error)[],
  replan: Fallback<Admission>["replan"] = (admission, plan) => ({ ...admission, plan }),
): Asked {
  const left = [...answers];
  const plans: Plan[] = [];
  const fellBack: Refusal[] = [];
  const leg: Leg = {
    path: PATH,
    admit: () => Promise.reject(new Error("it is admitted")),
    dial: async ({ plan }) => {
      plans.push(plan);
      const answer = left.shift();
      if (answer === undefined) throw new Error("nothing more is asked");
      if (answer instanceof Error) throw answer;
      return answer;
    },
    fallback: {
      planAfter: (plan) => (plan === FIRST ? NEXT : undefined),
      replan,
      fellBack: (_admission, refusal) => void fellBack.push(refusal),
    },
  };
  return { leg, plans, fellBack };
}

const negotiate = (leg: Leg, admission = admissionOf()) =>
  negotiateUpgrade(leg, { admission, handshake: HANDSHAKE }, new AbortController().signal);
const bodyOf = ({ response }: { response: UpgradeResponse }) =>
  response.kind === "refused" ? text(response.body) : "";
const statusOf = (message: string) => Buffer.from(statusBody(genericError(403, message).status)).toString();
const STATUS = statusOf("a Status");

describe("an upstream that is asked for a session", () => {
  it("is asked once where it switches", async () => {
    const { leg, plans, fellBack } = legThat([switching()]);
    expect((await negotiate(leg)).response.kind).toBe("switched");
    expect([plans, fellBack]).toEqual([[FIRST], []]);
  });

  it("is asked once where the leg has no other plan", async () => {
    const { leg, plans } = legThat([refusing(403, "no")]);
    const { fallback: _none, ...alone } = leg;
    const { response } = await negotiate(alone);
    expect(response.status).toBe(403);
    expect(plans).toEqual([FIRST]);
  });

  it("is asked by the next plan behind a refusal, whose text the leg judges", async () => {
    const judged: Refusal[] = [];
    const first = refusing(400, "what is v5?");
    const { leg, plans, fellBack } = legThat([first, switching()], (admission, plan, refusal) => {
      judged.push(refusal);
      return { ...admission, plan };
    });
    const { admission, response, handshake } = await negotiate(leg);
    expect(response.kind).toBe("switched");
    expect(admission.plan).toBe(NEXT);
    expect(handshake.switchTo("v5.channel.k8s.io")).toContainEqual(["Upgrade", "websocket"]);
    expect(plans).toEqual([FIRST, NEXT]);
    expect(judged).toEqual([expect.objectContaining({ text: "what is v5?" })]);
    expect(fellBack).toEqual(judged);
    await expect.poll(() => first.body.destroyed).toBe(true);
  });

  it("is not asked again where the refusal is not about the path, and the refusal is whole", async () => {
    const { leg, plans } = legThat([refusing(403, "forbidden")], () => undefined);
    const refused = await negotiate(leg);
    expect(await bodyOf(refused)).toBe("forbidden");
    expect(plans).toEqual([FIRST]);
  });

  it.each([
    [
      "policy forbids the next plan",
      legThat([refusing(400, "first")], () => {
        throw genericError(403, "policy");
      }),
      admissionOf(),
    ],
    [
      "the next plan reaches nothing",
      legThat([refusing(400, "first"), genericError(500, "gone")]),
      admissionOf(),
    ],
    [
      "the client's request cannot be answered by the next plan",
      legThat([refusing(400, "first")]),
      admissionOf(false),
    ],
  ])("gives its first refusal to the client where %s", async (_name, { leg, fellBack }, admission) => {
    const refused = await negotiate(leg, admission);
    expect(refused.admission.plan).toBe(FIRST);
    expect(await bodyOf(refused)).toBe("first");
    expect(fellBack).toEqual([]);
  });

  it.each([
    ["the second of two texts", "first", "second", "second"],
    ["a Status before a page", STATUS, "<html>", STATUS],
    ["the second of two Statuses", STATUS, statusOf("other"), "other"],
  ])("of two refusals, gives %s", async (_name, first, second, given) => {
    const { leg, fellBack } = legThat([refusing(400, first), refusing(404, second)]);
    expect(await bodyOf(await negotiate(leg))).toContain(given);
    expect(fellBack).toEqual([]);
  });

  it("gives the error where it never answered", async () => {
    const { leg } = legThat([genericError(500, "error dialing backend")], () => undefined);
    await expect(negotiate(leg)).rejects.toThrow("error dialing backend");
  });

  it("gives the handshake's refusal where it never answered, and the client cannot be answered", async () => {
    const { leg } = legThat([genericError(500, "error dialing backend")]);
    await expect(negotiate(leg, admissionOf(false))).rejects.toThrow(HandshakeRefusal);
  });

  it("is not asked again for a client that left", async () => {
    const { leg, plans } = legThat([new UpstreamError("aborted", "context canceled")]);
    await expect(negotiate(leg)).rejects.toThrow("context canceled");
    expect(plans).toEqual([FIRST]);
  });

  it("is let go where the client leaves during the second attempt", async () => {
    const first = refusing(400, "first");
    const { leg } = legThat([first, new UpstreamError("aborted", "context canceled")]);
    await expect(negotiate(leg)).rejects.toThrow("context canceled");
    await expect.poll(() => first.body.destroyed).toBe(true);
  });
});
