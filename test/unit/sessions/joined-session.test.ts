import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defaultWebSocketLimits } from "../../../protocols/websocket/index.ts";
import { JoinedSession } from "../../../src/sessions/carriers/joined-session.ts";
import {
  JOINER_BEAT_MS,
  type JoinAnswer,
  type Joinable,
  MAX_INPUT_BATCH,
} from "../../../src/sessions/session-joins.ts";
import type { OutputAnswer, OutputPage } from "../../../src/sessions/session-outputs.ts";
import { CarriedSession } from "../../support/carried-session.ts";
import { eventually } from "../../support/eventually.ts";
import { channelPeer, webSocketPipe } from "../../support/session-peers.ts";

// The bounds under test.
const MAX_JOINED_INPUT = 64 * 1024;
const MAX_DEAF_MS = 2_000;

const page = (from: number, ...texts: string[]): OutputPage => ({
  from,
  next: from + texts.length,
  events: texts.map((text) => [0, "o", text] as const),
  isOver: false,
});
const OVER = { metadata: {}, status: "Success" };

/** A join of a scripted session: `answers` are those to input, `pages` those to reads; then both wait. */
function joined(first: OutputPage = page(0), hasTerminal = true) {
  const carried = new CarriedSession();
  const typed: string[] = [];
  const beats: boolean[] = [];
  const state = { answer: "taken" as JoinAnswer };
  const reads: ((answer: OutputAnswer) => void)[] = [];
  const session: Joinable = {
    name: "s",
    hasTerminal,
    unansweredMs: 300,
    first,
    read: () => new Promise((resolve) => reads.push(resolve)),
    type: async (bytes, isLeaving = false) => {
      await turn();
      if (bytes.byteLength === 0) beats.push(isLeaving);
      else if (state.answer === "taken") typed.push(Buffer.from(bytes).toString());
      return state.answer;
    },
  };
  carried.client.on("error", () => {});
  const options = { version: "v5.channel.k8s.io", webSocketLimits: defaultWebSocketLimits } as const;
  carried.carry(
    (life) => new JoinedSession({ socket: carried.client, head: new Uint8Array(0) }, session, options, life),
  );
  const pipe = webSocketPipe(carried.client, "client");
  const joiner = channelPeer(pipe, { hasClose: true });
  const answer = async (next: OutputAnswer): Promise<void> => {
    await eventually("it is asked", () => reads.length > 0);
    reads.shift()?.(next);
    await turn();
  };
  const status = (): { code?: number; message?: string; details?: unknown } => {
    joiner.receive();
    return JSON.parse(joiner.received.error ?? "{}") as object;
  };
  const concluded = () => eventually("it is told", () => "status" in status());
  return { carried, joiner, pipe, typed, beats, state, answer, status, concluded };
}

describe("a join", () => {
  it("shows what is kept and what follows, and marks in a terminal what is missing", async () => {
    const { joiner, answer } = joined(page(3, "kept "));
    await answer(page(4, "next "));
    await answer(page(9, "later"));
    joiner.receive();
    expect(joiner.received.stdout).toBe("kept next \r\nsluice: output is missing here\r\nlater");
    const plain = joined(page(0), false);
    await plain.answer(page(9, "later"));
    plain.joiner.receive();
    expect(plain.joiner.received.stdout).toBe("later");
  });

  it("types in the order of its input, one batch in flight and each of a bounded size", async () => {
    const { joiner, typed, carried } = joined();
    const paste = "x".repeat(2 * MAX_INPUT_BATCH + 1);
    joiner.send("stdin", "a");
    joiner.send("stdin", paste);
    joiner.send("stdin", "z");
    joiner.send("resize", '{"Width":1,"Height":1}');
    joiner.finish("stdin");
    await eventually("all is typed", () => typed.join("") === `a${paste}z`);
    expect(Math.max(...typed.map((batch) => batch.length))).toBe(MAX_INPUT_BATCH);
    expect(carried.life.upstreamBytes).toBe(paste.length + 2);
    expect(carried.causes).toEqual([]);
  });

  it("does not read a joiner on while so much of its input waits", async () => {
    const { joiner, typed, state, carried } = joined();
    state.answer = "later";
    joiner.send("stdin", "x".repeat(MAX_JOINED_INPUT - 1));
    await turn();
    expect(carried.client.isPaused()).toBe(false);
    joiner.send("stdin", "y");
    await eventually("it is not read", () => carried.client.isPaused());
    expect(typed).toEqual([]);
    state.answer = "taken";
    await eventually("it is read again", () => !carried.client.isPaused());
    await eventually("all is typed", () => typed.join("").endsWith("y"));
  });

  it("shows that the joiner is there while it types nothing", async () => {
    const { beats, carried } = joined();
    carried.clock.advance(JOINER_BEAT_MS - 1);
    await turn();
    expect(beats).toEqual([]);
    carried.clock.advance(1);
    await eventually("it beats", () => beats.length === 1);
    expect(beats).toEqual([false]);
  });

  it("ends with the session's Status", async () => {
    const { answer, state, status, concluded, pipe, carried } = joined();
    state.answer = { over: OVER };
    await answer({ ...page(0, "bye"), isOver: true });
    await concluded();
    expect([status(), pipe.closes]).toEqual([OVER, [1000]]);
    carried.client.push(null);
    await eventually("it is reported", () => carried.causes.length === 1);
    expect(carried.causes).toEqual(["completed"]);
  });

  it("ends with 409 if the session goes on and takes no more input", async () => {
    const { joiner, state, status, concluded } = joined();
    state.answer = "no-input";
    const startedMs = performance.now();
    joiner.send("stdin", "x");
    await concluded();
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(MAX_DEAF_MS - 50);
    expect(status()).toMatchObject({
      code: 409,
      details: { causes: [{ reason: "sluice.dev/JoinEnded", message: "upstream-failed" }] },
    });
  });

  it.each([
    ["input is not answered", "unreachable", undefined],
    ["the session is gone with its process", "unknown", "unknown"],
  ] as const)("ends with 503 if %s", async (_name, typed, read) => {
    const { joiner, state, status, concluded, answer } = joined();
    state.answer = typed;
    if (read === undefined) joiner.send("stdin", "x");
    else await answer(read);
    await concluded();
    expect(status()).toMatchObject({ code: 503, details: { causes: [{ reason: "sluice.dev/JoinEnded" }] } });
  });

  it("ends with 503 if the session's process gives no answer for too long", async () => {
    const { status, concluded, answer } = joined();
    await answer("unreachable");
    await answer("unreachable");
    await concluded();
    expect(status()).toMatchObject({ code: 503, message: expect.stringContaining("does not answer") });
  });

  it("ends where its joiner may not any more, and leaves the session", async () => {
    const { carried, status, concluded, beats } = joined();
    const revoked = { metadata: {}, status: "Failure", reason: "Forbidden", code: 403, message: "revoked" };
    carried.life.cut("authorization-revoked", "revoked", revoked);
    await concluded();
    expect(status()).toMatchObject({ ...revoked, details: { causes: [{ reason: "sluice.dev/JoinEnded" }] } });
    await eventually("it leaves", () => beats.includes(true));
  });

  it("types what came before its joiner's Close, then leaves", async () => {
    const { joiner, typed, beats } = joined();
    joiner.send("stdin", "last words\n");
    joiner.leave();
    await eventually("it leaves", () => beats.includes(true));
    expect(typed).toEqual(["last words\n"]);
  });
});
