import { describe, expect, it } from "vitest";
import type { Ingress } from "../../../src/api/networking-objects.ts";
import { ApiError } from "../../../src/kubernetes/api-client.ts";
import { SharedEventRecorder } from "../../../src/kubernetes/shared-event-recorder.ts";
import { startLive } from "./live.ts";

// The bounds under test.
const MAX_BURST_EVENTS = 25;
const EVENT_REFILL_MS = 5 * 60_000;
const MAX_PENDING_EVENTS = 1_000;

function ingress(name: string): Ingress {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, namespace: "default", uid: `uid-${name}` },
  };
}

function recording(
  json: (request: { method?: string; path: string }) => Promise<unknown> = async () => ({}),
) {
  const asked: string[] = [];
  const dropped: string[] = [];
  const failures: string[] = [];
  let nowMs = 0;
  const recorder = new SharedEventRecorder({
    client: {
      json: (request) => {
        asked.push(`${request.method ?? "GET"} ${request.path}`);
        return json(request);
      },
    },
    mayWrite: () => true,
    onFailure: (problem) => failures.push(problem),
    onDropped: (reason) => dropped.push(reason),
    nowMs: () => nowMs,
  });
  const say = (name: string, message = "of no use") =>
    recorder.record({ involved: ingress(name), type: "Warning", reason: "SkippedBackend", message });
  return { recorder, say, asked, dropped, failures, pass: (ms: number) => (nowMs += ms) };
}

describe("SharedEventRecorder", () => {
  it("writes one Event for what is said twice, by whoever, and counts", async () => {
    const { server, client } = await startLive();
    for (let replica = 0; replica < 2; replica++) {
      const { recorder, say, failures } = recording((request) => client.json(request));
      say("web");
      say("web", "something else");
      await recorder.settled();
      expect(failures).toEqual([]);
    }
    const { items } = (await client.json({ path: "/api/v1/namespaces/default/events" })) as {
      items: { count: number; message: string; involvedObject: object }[];
    };
    expect(server.store.version).toBeGreaterThan(0);
    expect(items.map(({ message, count }) => `${message} x${count}`).sort()).toEqual([
      "of no use x2",
      "something else x2",
    ]);
    expect(items[0]?.involvedObject).toMatchObject({ kind: "Ingress", name: "web", uid: "uid-web" });
  });

  it("lets an object say so much at once, and then one thing in a while", async () => {
    const { recorder, say, asked, dropped, pass } = recording();
    for (let index = 0; index < MAX_BURST_EVENTS + 5; index++) say("web", `message ${index}`);
    say("other");
    await recorder.settled();
    expect(asked).toHaveLength(MAX_BURST_EVENTS + 1);
    expect(dropped).toEqual(Array.from({ length: 5 }, () => "object"));
    pass(EVENT_REFILL_MS);
    say("web", "later");
    say("web", "too soon");
    await recorder.settled();
    expect(asked).toHaveLength(MAX_BURST_EVENTS + 2);
  });

  it("keeps so many waiting and no more", async () => {
    const { recorder, say, asked, dropped } = recording();
    for (let index = 0; index < MAX_PENDING_EVENTS + 3; index++) say(`web-${index}`);
    expect(dropped).toEqual(["queue", "queue", "queue"]);
    await recorder.settled();
    expect(asked).toHaveLength(MAX_PENDING_EVENTS);
  });

  it("tells of a failure and goes on; what waits at the end is lost", async () => {
    const { recorder, say, asked, failures } = recording(async () => {
      throw new ApiError(403, "");
    });
    say("web");
    say("other");
    await recorder.settled();
    expect(failures).toEqual(["the API server answered 403", "the API server answered 403"]);
    say("third");
    await recorder.stop();
    expect(asked).toHaveLength(2);
  });

  it("cuts what the API would not take", async () => {
    const { client } = await startLive();
    const { recorder, say } = recording((request) => client.json(request));
    say("n".repeat(253), "m".repeat(5_000));
    await recorder.settled();
    const { items } = (await client.json({ path: "/api/v1/namespaces/default/events" })) as {
      items: { message: string; metadata: { name: string } }[];
    };
    expect(items[0]?.message).toHaveLength(1_024);
    expect(items[0]?.metadata.name).toHaveLength(253);
  });
});
