import { describe, expect, it } from "vitest";
import { forbidden } from "../../../packages/client/src/api/status.ts";
import type { BeforeDial } from "../../../src/sessions/context.ts";
import type { SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import { EventList } from "../../support/event-list.ts";
import type { HarnessOptions } from "../../support/gateway-harness.ts";
import { gatewayOverKubelet } from "../../support/gateway-over-kubelet.ts";
import { endExec, type KubeletScript, SUCCESS } from "../../support/scripted-kubelet.ts";
import { V5Client } from "../../support/v5-client.ts";

const gateway = gatewayOverKubelet();

async function start(
  script: KubeletScript,
  beforeDial: BeforeDial,
  query = "stdout=true&command=x",
  headers: Readonly<Record<string, string>> = {},
  user: HarnessOptions["user"] = {},
): Promise<V5Client> {
  return new V5Client(await gateway.start(script, { beforeDial, user }), query, "exec", headers);
}

const ANSWERS: KubeletScript = {
  onStream: (name, _stream, session) => {
    if (name !== "stdout") return;
    session.streams.get("stdout")?.write(Buffer.from("out"));
    endExec(session, SUCCESS);
  },
};

describe("the step before the dial", () => {
  it("is awaited, knows the session, and gives it an observer", async () => {
    const list = new EventList();
    let go = (): void => {};
    const gone = new Promise<void>((resolve) => {
      go = resolve;
    });
    const asked: unknown[] = [];
    const client = await start(ANSWERS, async ({ user, request, info }) => {
      asked.push([user.name, request.command, info.pod, gateway.kubelet?.sessions.length]);
      await gone;
      return [list];
    });
    await expect.poll(() => asked).toEqual([["tester", ["x"], "web", 0]]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(gateway.kubelet?.requests).toEqual([]);
    go();
    const { stdout, closeCode } = await client.done;
    expect([stdout.toString(), closeCode]).toEqual(["out", 1000]);
    await expect.poll(() => list.events.at(-1)).toBe("completed, by node");
    expect(list.events.slice(0, 2)).toEqual(["begins for tester", "node stdout: out"]);
  });

  it("tells observers the command line and groups, which no list has", async () => {
    const details: unknown[] = [];
    let listed = "";
    const observer: SessionObserver = {
      isRequired: false,
      payload: { node: true },
      onBegin: ({ info }) => void details.push(info?.details),
      onData: () => {
        listed = JSON.stringify(gateway.harness?.context.sessions.list());
        return undefined;
      },
    };
    const client = await start(
      ANSWERS,
      async ({ info }) => {
        details.push(info.details?.protocol);
        return [observer];
      },
      "stdout=true&command=login&command=--password=hunter2",
      { "User-Agent": "kubectl/v1.37.2" },
    );
    await client.done;
    expect(details).toEqual([
      "",
      {
        container: "main",
        isEphemeral: false,
        command: ["login", "--password=hunter2"],
        tty: false,
        stdin: false,
        groups: [],
        client: { address: "127.0.0.1", agent: "kubectl/v1.37.2" },
        protocol: "v5.channel.k8s.io",
      },
    ]);
    expect(listed).toContain('"pod":"web"');
    expect(listed).not.toMatch(/hunter2|details|command/);
    expect(gateway.harness?.logLines.join("")).not.toMatch(/hunter2/);
  });

  it("tells when the user's credentials expire, or those of the user who impersonates another", async () => {
    const seen: unknown[] = [];
    const beforeDial: BeforeDial = async ({ info }) => {
      seen.push([info.user, info.requestedBy, info.details?.expiresAtMs]);
      return [];
    };
    const user = { expiresAtMs: 1_900_000_000_000 };
    await (await start(ANSWERS, beforeDial, undefined, {}, user)).done;
    await gateway.harness?.close();
    await gateway.kubelet?.close();
    const asJane = { "Impersonate-User": "jane" };
    await (await start(ANSWERS, beforeDial, undefined, asJane, user)).done;
    expect(seen).toEqual([
      ["tester", undefined, user.expiresAtMs],
      ["jane", "tester", user.expiresAtMs],
    ]);
    expect(gateway.harness?.logLines.join("")).not.toContain("expiresAt");
  });

  it("may refuse the session: no node is dialled, and its place is free", async () => {
    const client = await start(ANSWERS, () => Promise.reject(forbidden("pods", "web", "no recorder")));
    await expect(client.opened).rejects.toThrow("403");
    expect(gateway.kubelet?.requests).toEqual([]);
    expect(gateway.harness?.context.sessions.size).toBe(0);
  });

  it("is told if the session did not start then", async () => {
    const events: string[] = [];
    const observer: SessionObserver = {
      isRequired: false,
      onBegin: () => void events.push("begins"),
      onNotStarted: () => void events.push("not started"),
      onEnd: () => void events.push("ended"),
    };
    const client = await start(
      { refuse: () => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" },
      async () => [observer],
    );
    await expect(client.opened).rejects.toThrow("404");
    await expect.poll(() => events).toEqual(["not started"]);
  });
});
