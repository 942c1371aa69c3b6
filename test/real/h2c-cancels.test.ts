import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { FLAG, FRAME, openFrameClient } from "../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../support/front-door.ts";
import { ask, connectHttp2, type Http2Answer } from "../support/http2-client.ts";
import { headerBlockOf } from "../support/http2-frames.ts";
import { GoProbePrograms } from "../support/kubelet-prober.ts";
import { describeReal } from "../support/real-parts.ts";

const ROUNDS = 20;
const CONNECTIONS = 5;
const STREAM_IDS = Array.from({ length: 100 }, (_, index) => 1 + 2 * index);
const STUBBORN = headerBlockOf({
  ":method": "GET",
  ":scheme": "http",
  ":path": "/stubborn",
  ":authority": "a",
});

describeReal("go", "one client's cancelled requests at an h2c backend of net/http", () => {
  const go = new GoProbePrograms();
  let door: FrontDoor;

  beforeAll(async () => {
    const { h2c } = await go.startServers();
    door = await FrontDoor.start([
      ...serviceObjects("app", [{ port: h2c?.port ?? 0 }], { appProtocol: "kubernetes.io/h2c" }),
      ingressObject("all", { defaultBackend: backend("app") }),
    ]);
    await door.serves(1);
  }, 60_000);
  afterAll(async () => {
    await door?.stop();
    go.stop();
  });

  it("fail no other client's", async () => {
    const honest = await connectHttp2(`http://127.0.0.1:${door.httpPort}`, {
      localAddress: "127.0.0.2",
    } as object);
    let cancelled = 0;
    let isAttacked = true;
    const attack = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round += 1) {
        // Who takes back too much too fast loses the connection: each round has new ones.
        const attackers = await Promise.all(
          Array.from({ length: CONNECTIONS }, () => openFrameClient(door.httpPort)),
        );
        for (const attacker of attackers)
          for (const id of STREAM_IDS)
            attacker.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, id, STUBBORN);
        for (const attacker of attackers) attacker.send(FRAME.ping, 0, 0, Buffer.alloc(8));
        await eventually("the gateway has read them", () =>
          attackers.every((attacker) => attacker.isOver || attacker.has(FRAME.ping, 0)),
        );
        for (const attacker of attackers) for (const id of STREAM_IDS) attacker.reset(id, 8);
        cancelled += CONNECTIONS * STREAM_IDS.length;
        await Promise.all(attackers.map(({ raw }) => new Promise<void>((resolve) => raw.end(resolve))));
      }
    };
    const attacks = attack().finally(() => {
      isAttacked = false;
    });
    const answers: Http2Answer[] = [];
    while (isAttacked) {
      const asked = Array.from({ length: 10 }, (_, index) =>
        index % 2 === 0
          ? ask(honest, "/", { ":authority": "a" })
          : ask(honest, "/", { ":method": "POST", ":authority": "a" }, "body"),
      );
      answers.push(...(await Promise.all(asked)));
    }
    await attacks;
    honest.destroy();
    expect(cancelled).toBe(10_000);
    expect(answers.length).toBeGreaterThanOrEqual(10);
    expect(answers.filter(({ status, body }) => status !== 200 || body !== "HTTP/2.0")).toEqual([]);
  }, 120_000);
});
