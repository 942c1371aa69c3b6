import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import type { Decision } from "../../../../src/access/authz/authorizer.ts";
import { endSession } from "../../../../src/sessions/session-actions.ts";
import { eventually } from "../../../support/eventually.ts";
import type { GatewayHarness } from "../../../support/gateway-harness.ts";
import { testEnds, testFailures } from "../../../support/session-end-tests.ts";
import {
  BRIDGES,
  CLIENT,
  COMPLETED,
  closeEnds,
  endsWithPeer,
  opened,
  PATHS,
  type Path,
  readBy,
  report,
  SettableClock,
  server,
  spdyData,
  start,
  write,
} from "../../../support/session-ends.ts";

afterEach(closeEnds);

describe.each(PATHS)("the end of $name", (path) => {
  testEnds(path);

  it("is the client's that leaves in its protocol's words, though the node's connection ends first", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    const heard = once(node, "data");
    write(client, path.clientLeaves);
    // Where the gateway ends the protocol itself the node hears of it by FIN.
    endsWithPeer(node);
    await Promise.race([heard, once(node, "end")]);
    node.end();
    expect(await report()).toEqual(CLIENT);
  });

  it("is the client's that is killed: FIN, and its node breaks off then", async () => {
    const { client, node } = await start(path);
    node.once("end", () => node.resetAndDestroy());
    node.resume();
    client.end();
    expect(await report()).toEqual(CLIENT);
  });

  it("is the gateway's that drains", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    endsWithPeer(node);
    void opened.gateway?.context.sessions.endAll("the gateway is shutting down");
    expect(await report()).toEqual({ endedBy: "gateway", cause: "shutdown", code: 500 });
  });

  it("is the gateway's where a limit is reached", async () => {
    const rule = { name: "short", action: "allow", maxDuration: "10s" };
    const clock = new SettableClock();
    const { client, node } = await start(path, { policy: { rules: [rule] }, clock });
    for (const end of [client, node]) endsWithPeer(end);
    clock.aheadMs = 10_000;
    expect(await report()).toEqual({ endedBy: "gateway", cause: "time-limit", code: 500 });
  });
});

const FREEZE = "the session was ended by cleo: production freeze";
const FORBIDDEN = {
  metadata: {},
  status: "Failure",
  message: FREEZE,
  reason: "Forbidden",
  details: { causes: [{ reason: "sluice.dev/SessionEnded", message: "moderator" }] },
  code: 403,
};

/** What a moderator's end looks like to the client of each protocol. */
function endByModerator({ clientHead, subresource }: Path): string[] {
  const status = JSON.stringify(FORBIDDEN);
  const isSpdy = clientHead[0]?.includes("SPDY") === true;
  const text = `error forwarding port 80: ${FREEZE}`;
  if (subresource === "portforward") return isSpdy ? [`1:${text}`] : [`closed with 1008 ${FREEZE}`];
  if (isSpdy) return [`1:${status}`];
  const isBase64 = clientHead.some((line) => line.includes("base64"));
  const message = isBase64 ? `3${Buffer.from(status).toString("base64")}` : `\u0003${status}`;
  return [message, "closed with 1000"];
}

describe.each(PATHS)("$name that a moderator ends", (path) => {
  it("has the moderator's Status behind whole frames of the node, though the node goes on", async () => {
    const { client, node } = await start(path);
    const received: Buffer[] = [];
    client.on("data", (chunk: Buffer) => received.push(chunk));
    const closed = new Promise((resolve) => client.once("close", resolve));
    for (const end of [client, node]) endsWithPeer(end);
    node.write(Buffer.concat([path.output, path.output.subarray(0, 5)]));
    const out = path.name.includes("base64") ? "b3V0" : "out";
    await eventually("the output came", () => Buffer.concat(received).includes(out));
    const { sessions } = opened.gateway?.context as GatewayHarness["context"];
    const id = sessions.list()[0]?.id ?? "";
    const ended = endSession([sessions], { id, message: FREEZE, status: FORBIDDEN });
    node.write(Buffer.concat([path.output.subarray(5), path.output]));
    expect(await ended).toBe("ended");
    expect(await report()).toEqual({ endedBy: "gateway", cause: "moderator", code: 403 });
    await closed;
    const seen = readBy(path, Buffer.concat(received));
    const end = endByModerator(path);
    expect(seen.slice(seen.length - end.length)).toEqual(end);
  });
});

describe.each([...PATHS, ...BRIDGES])("$name whose user may no longer have it", (path) => {
  it("ends with a Status that says so, and not while no authorizer decides", async () => {
    let decision: Decision = { decision: "allow", reason: "" };
    const clock = new SettableClock();
    const { client, node } = await start(path, {
      clock,
      authorizer: { authorize: async () => decision },
      sessions: { reauthorizeIntervalMs: 5_000, credentialExpiry: "end" },
    });
    const received: Buffer[] = [];
    client.on("data", (chunk: Buffer) => received.push(chunk));
    const closed = new Promise((resolve) => client.once("close", resolve));
    for (const end of [client, node]) endsWithPeer(end);
    const results = async () => (await opened.gateway?.metric("sluice_session_reauthorizations_total")) ?? [];
    const checked = (result: string) =>
      eventually(`it was ${result}`, async () =>
        (await results()).some((line) => line.includes(`"${result}"`) && !line.endsWith(" 0")),
      );
    clock.aheadMs += 5_000;
    await checked("allowed");
    decision = { decision: "no-opinion", reason: "", error: "the webhook gave no answer" };
    clock.aheadMs += 5_000;
    await checked("undecided");
    expect(opened.gateway?.context.sessions.list()).toHaveLength(1);
    decision = { decision: "no-opinion", reason: "the binding is gone" };
    clock.aheadMs += 5_000;
    expect(await report()).toEqual({ endedBy: "gateway", cause: "authorization-revoked", code: 403 });
    await closed;
    const text = readBy(path, Buffer.concat(received)).join("\n");
    const plain = /base64/.test(path.clientHead.join()) ? fromBase64(text) : text;
    // A bridged SPDY port-forward has no error stream before its client connects.
    if (path.subresource === "portforward" && path.plan === "bridge" && text.startsWith("0:")) return;
    // A Close frame has room for the beginning alone.
    expect(plain).toContain("the session was ended: pods");
  });

  it("ends when the user's credentials expire", async () => {
    const { client, node } = await start(path, {
      user: { expiresAtMs: Date.now() + 1_000 },
      sessions: { reauthorizeIntervalMs: 0, credentialExpiry: "end" },
    });
    for (const end of [client, node]) endsWithPeer(end);
    expect(await report()).toEqual({ endedBy: "gateway", cause: "authorization-revoked", code: 403 });
    expect(await opened.gateway?.metric('sluice_session_reauthorizations_total{result="expired"}')).toEqual([
      'sluice_session_reauthorizations_total{result="expired"} 1',
    ]);
  });
});

/** Of a message on the error channel. */
function fromBase64(text: string): string {
  const encoded = text.split("\n").find((line) => line.startsWith("3")) ?? "";
  return Buffer.from(encoded.slice(1), "base64").toString();
}

describe.each(PATHS)("the client of $name", testFailures);

describe.each(PATHS.filter(({ nodeFails }) => nodeFails !== undefined))("the end of $name", (path) => {
  it("is complete with an exit code that is not 0", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    write(node, path.nodeFails);
    node.end();
    expect(await report()).toEqual(COMPLETED);
  });

  it("is the node's that reports a failure", async () => {
    const { client, node } = await start(path);
    endsWithPeer(client);
    write(node, path.nodeReportsFailure);
    node.end();
    expect(await report()).toEqual({ endedBy: "node", cause: "upstream-failed", code: 500 });
  });

  it("is complete though the client, which has the status, resets before the node ends", async () => {
    const { client, node } = await start(path);
    if (path.plan === "translate") return;
    const status = once(client, "data");
    write(node, path.nodeSucceeds.slice(0, 1));
    await status;
    client.resetAndDestroy();
    expect(await report()).toEqual(COMPLETED);
  });

  it("is the client's that never got the result", async () => {
    const { client, node } = await start(path);
    client.pause();
    // More than both kernels take, so that the status waits in the gateway.
    const output = "x".repeat(60_000);
    const isSpdy = path.nodeHead[0]?.includes("SPDY") === true;
    const frame = isSpdy ? spdyData(3, output) : server(path.name.includes("base64") ? "1" : 1, output);
    for (let sent = 0; sent < 8_000_000; sent += frame.byteLength) node.write(frame);
    write(node, path.nodeSucceeds);
    node.end();
    await eventually("the gateway holds output", () => node.writableLength > 0 || node.writableFinished);
    client.resetAndDestroy();
    endsWithPeer(node);
    expect(await report()).toEqual(CLIENT);
  });
});

it("a SPDY client that resets behind its status, with the node's GOAWAY unread, has its result", async () => {
  const path = PATHS.find(({ name }) => name === "exec, SPDY v4 passed through") as Path;
  const { client, node } = await start(path);
  client.pause();
  endsWithPeer(node);
  write(node, path.nodeSucceeds);
  node.end();
  // Its place is free when everything was written, and the client's kernel has it.
  await eventually("the session is over", () => opened.gateway?.context.sessions.size === 0);
  await new Promise((resolve) => setImmediate(resolve));
  client.resetAndDestroy();
  expect(await report()).toEqual(COMPLETED);
});
