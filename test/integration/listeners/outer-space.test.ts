import { once } from "node:events";
import { type ClientHttp2Session, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { dropsSpacedHeaders } from "../../../src/config/configuration-warnings.ts";
import { KEEPS_OUTER_SPACE } from "../../../src/http/http2-headers.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ask, connectHttp2, openWebSocket } from "../../support/http2-client.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";
import { TWO_NODES } from "../../support/two-nodes.ts";

const PODS = "/api/v1/namespaces/default/pods";
const EXEC = `${PODS}/web/exec?command=true&stdout=true`;

describe("control characters in an impersonated name over HTTP/1.1", () => {
  it.each(["\x01", "\x00", "\x1b", "\x7f", "\r"])("%j is refused with 400", async (character) => {
    const gateway = await startTestGateway(TWO_NODES);
    onTestFinished(() => gateway.stop());
    for (const name of ["Impersonate-User", "Impersonate-Group", "Impersonate-Extra-Scopes"]) {
      const port = Number(new URL(gateway.apiServerUrl).port);
      const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
      onTestFinished(() => void socket.destroy());
      socket.setEncoding("latin1");
      socket.write(
        `GET ${PODS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${gateway.token}\r\nImpersonate-User: nobody\r\n${name}: no${character}body\r\n\r\n`,
        "latin1",
      );
      const [answer] = (await once(socket, "data")) as [string];
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    }
  });
});

// nghttp2 drops such headers there, and nobody hears of them.
describe.skipIf(dropsSpacedHeaders(process.versions.node))("white space around a value over HTTP/2", () => {
  let gateway: TestGateway;
  let session: ClientHttp2Session;
  let authorization: string;

  beforeAll(async () => {
    gateway = await startTestGateway(TWO_NODES);
    authorization = `Bearer ${gateway.token}`;
    session = await connectHttp2(gateway.apiServerUrl);
  });
  afterAll(async () => {
    session?.destroy();
    await gateway?.stop();
  });

  it.each([
    ["impersonate-user", "nobody "],
    ["impersonate-user", " nobody"],
    ["impersonate-group", "dev\t"],
    ["impersonate-extra-scopes", "view "],
  ])("%s %j is refused, and not carried out with the sender's own rights", async (name, value) => {
    const headers = { authorization, "impersonate-user": "nobody", [name]: value };
    const answer = await ask(session, PODS, headers);
    expect([answer.status, answer.body]).toEqual([400, expect.stringContaining("white space")]);
    const protocol = { "sec-websocket-protocol": "v5.channel.k8s.io" };
    expect(await openWebSocket(session, EXEC, { ...headers, ...protocol })).toMatchObject({ status: 400 });
  });

  it("means nothing in other headers", async () => {
    const answer = await ask(session, PODS, {
      authorization: `${authorization} `,
      accept: " application/json ",
    });
    expect(answer.status).toBe(200);
  });

  it("loses no header of a request or an answer at the front door", async () => {
    const upstream = createServer({ settings: {}, ...KEEPS_OUTER_SPACE });
    upstream.on("stream", (stream, headers) => {
      stream.respond({ ":status": 200, "x-answer": "b ", "x-seen": JSON.stringify(headers["x-request"]) });
      stream.end();
    });
    upstream.listen(0, "127.0.0.1");
    onTestFinished(() => void upstream.close());
    await once(upstream, "listening");
    const { port } = upstream.address() as AddressInfo;
    const door = await FrontDoor.start([
      ...serviceObjects("app", [{ port }], { appProtocol: "kubernetes.io/h2c" }),
      ingressObject("all", { defaultBackend: backend("app") }),
    ]);
    onTestFinished(() => door.stop());
    await door.serves(1);
    const client = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
    onTestFinished(() => client.destroy());
    const { headers } = await ask(client, "/", { ":authority": "a", "x-request": " a\t" });
    expect([headers["x-seen"], headers["x-answer"]]).toEqual(['"a"', "b"]);
  });
});
