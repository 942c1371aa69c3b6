import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../../support/front-door.ts";
import { ask, connectHttp2 } from "../../../support/http2-client.ts";

async function start() {
  const door = await FrontDoor.start([]);
  onTestFinished(() => door.stop());
  const pod = await door.addPod("app");
  door.write([...serviceObjects("app", [pod]), ingressObject("all", { defaultBackend: backend("app") })]);
  await door.serves(1);
  return door;
}

async function raw(port: number, head: readonly string[], body = ""): Promise<string> {
  const socket = connect(port, "127.0.0.1").setEncoding("latin1");
  let text = "";
  socket.on("data", (part: string) => {
    text += part;
  });
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  await once(socket, "close");
  return text;
}

const filler = (lines: number): string[] => Array.from({ length: lines }, (_, index) => `X-${index}: y`);

describe("header lines of a request", () => {
  // 200 with Host and Connection; Node 20 looks at its own bound after every 32 lines.
  it.each([
    ["front door", 198, 200],
    ["front door", 199, 431],
    ["front door", 260, 431],
    ["front door", 1_500, 431],
    ["API listener", 199, 431],
    ["API listener", 1_500, 431],
  ])("%s: with %i more lines it is %i, and none is lost", async (listener, lines, status) => {
    const door = await start();
    const port =
      listener === "front door" ? door.httpPort : Number(new URL(door.gateway.apiServerUrl ?? "").port);
    // A second Host is a 400 of its own at the API listener.
    const repeated = listener === "front door" ? ["Host: b"] : [];
    const last = lines > 250 ? ["Content-Length: 4", "Authorization: Bearer x", ...repeated] : [];
    const head = ["POST / HTTP/1.1", "Host: a", "Connection: close", ...filler(lines), ...last];
    const answer = await raw(port, head, last.length > 0 ? "body" : "");
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    if (status === 200) expect(answer).toContain(`"X-${lines - 1}"`);
  });

  it("an upgrade at the front door is refused for them as well", async () => {
    const { httpPort } = await start();
    const upgrade = ["Connection: Upgrade", "Upgrade: websocket"];
    expect(await raw(httpPort, ["GET / HTTP/1.1", "Host: a", ...filler(1_500), ...upgrade])).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  it("over HTTP/2 they are as many", async () => {
    const { httpPort } = await start();
    const session = await connectHttp2(`http://127.0.0.1:${httpPort}`, {
      maxHeaderListPairs: 3_000,
    } as object);
    onTestFinished(() => session.destroy());
    const lines = (count: number) =>
      Object.fromEntries(filler(count).map((line) => line.toLowerCase().split(": ")));
    expect((await ask(session, "/", { ":authority": "a", ...lines(199) })).status).toBe(200);
    expect((await ask(session, "/", { ":authority": "a", ...lines(250) })).status).toBe(431);
  });
});
