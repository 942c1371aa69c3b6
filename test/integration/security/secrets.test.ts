import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { AccessGateway, EXEC_PATH } from "../../support/access-gateway.ts";
import { rawExchange } from "../../support/raw-tls.ts";
import { endExec, SUCCESS } from "../../support/scripted-kubelet.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

/** Every secret of the run, by what it is. Random, so that nothing else can look like it. */
class Secrets {
  readonly #values = new Map<string, string>();

  make(what: string, prefix = ""): string {
    const value = `${prefix}${randomBytes(12).toString("hex")}`;
    this.add(what, value);
    return value;
  }

  add(what: string, value: string): void {
    this.#values.set(what, value);
    this.#values.set(`${what} in base64`, Buffer.from(value).toString("base64").replace(/=+$/, ""));
    this.#values.set(`${what} in base64url`, Buffer.from(value).toString("base64url"));
    this.#values.set(`${what} in a URL`, encodeURIComponent(value));
  }

  foundIn(text: string): string[] {
    return [...this.#values].filter(([, value]) => text.includes(value)).map(([what]) => what);
  }
}

it("T26: nothing secret stands in any log, metric, audit event or refusal of a whole run", async () => {
  const secrets = new Secrets();
  const good = secrets.make("the static token");
  const reviewed = secrets.make("the reviewed token");
  const unknown = secrets.make("an unknown token");
  const own = secrets.make("our own token to the API server");
  const cookie = secrets.make("a cookie");
  const malformedJwt = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${secrets.make("a JWT's claims")}.x`;
  const input = secrets.make("stdin");
  const output = secrets.make("stdout");
  const query = secrets.make("a token in a URL");
  const reviews = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      const authenticated = body.includes(reviewed);
      // A careless API server that repeats what it was asked.
      response.end(JSON.stringify({ status: { authenticated, error: body, user: { username: "rita" } } }));
    });
  });
  await new Promise<void>((resolve) => reviews.listen(0, "127.0.0.1", resolve));
  const users = await issueCertificate({ commonName: "users" });
  const jane = await issueCertificate({ commonName: "jane" }, users, { usage: "client" });
  for (const [what, pem] of [
    ["the users' authority", users.key],
    ["jane's key", jane.key],
  ] as const) {
    secrets.add(what, pem.split("\n")[1] as string);
  }
  const echoing = await AccessGateway.start(
    (folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), `${good},ann,1\n`);
      writeFileSync(path.join(folder, "users.crt"), users.cert);
      writeFileSync(path.join(folder, "own-token"), `${own}\n`);
      return {
        authentication: {
          tokenAuthFile: "tokens.csv",
          clientCAFile: "users.crt",
          tokenReview: {
            url: `http://127.0.0.1:${(reviews.address() as AddressInfo).port}`,
            tokenFile: "own-token",
          },
          oidc: { issuerURL: "https://127.0.0.1:1/issuer", audiences: ["sluice"] },
        },
        audit: { log: { path: "audit.log" }, policyFile: "policy.yaml" },
        logging: { level: "debug" },
        ...writePolicy(folder),
      };
    },
    {
      onData: (name, _, fin, session) => {
        if (name !== "stdin" || !fin) return;
        session.streams.get("stdout")?.write(Buffer.from(output));
        endExec(session, SUCCESS);
      },
    },
  );
  const answers: string[] = [];
  try {
    secrets.add(
      "the server's key",
      readFileSync(path.join(echoing.folder, "server.key"), "utf8").split("\n")[1] as string,
    );
    const subprotocol = (token: string) => [
      "v5.channel.k8s.io",
      `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`,
    ];
    const session = async (
      headers: Record<string, string>,
      protocols = ["v5.channel.k8s.io"],
      certificate = {},
    ) => {
      const target = `wss://${echoing.authority}${EXEC_PATH}&stdin=true&access_token=${query}`;
      const socket = new WebSocket(target, protocols, { ca: echoing.trusted, headers, ...certificate });
      await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
      let received = "";
      socket.on("message", (data: Buffer) => {
        received += data.toString();
      });
      socket.send(Buffer.concat([Buffer.of(0), Buffer.from(input)]));
      socket.send(Buffer.of(255, 0));
      await new Promise((resolve) => socket.once("close", resolve));
      expect(received).toContain(output);
    };
    await session({ Authorization: `Bearer ${good}`, Cookie: `session=${cookie}` });
    await session({ Authorization: `Bearer ${reviewed}` });
    await session({}, subprotocol(good));
    await session({}, undefined, jane);
    const idToken = `${Buffer.from('{"alg":"RS256"}').toString("base64url")}.${Buffer.from(
      JSON.stringify({ iss: "https://127.0.0.1:1/issuer", sub: secrets.make("a claim") }),
    ).toString("base64url")}.${secrets.make("a signature")}`;
    secrets.add("an ID token", idToken);
    for (const token of [unknown, malformedJwt, idToken, `${unknown}${"x".repeat(20_000)}`]) {
      answers.push(JSON.stringify(await echoing.exec({ headers: { Authorization: `Bearer ${token}` } })));
      answers.push(
        JSON.stringify(await echoing.exec({ headers: { Cookie: `session=${cookie}` } }, subprotocol(token))),
      );
      answers.push(
        JSON.stringify(await echoing.get("/api", { headers: { Authorization: `Bearer ${token}` } })),
      );
    }
    const broken = `GET /${"x".repeat(100_000)} HTTP/1.1\r\nAuthorization: Bearer ${good}\r\n\r\n`;
    answers.push((await rawExchange(echoing.authority, echoing.trusted, broken)).head);
    reviews.close();
    reviews.closeAllConnections();
    const fresh = secrets.make("a token that nobody could review");
    answers.push(JSON.stringify(await echoing.exec({ headers: { Authorization: `Bearer ${fresh}` } })));
  } finally {
    const audit = path.join(echoing.folder, "audit.log");
    const metrics = await echoing.metrics();
    const events = readFileSync(audit, "utf8");
    await echoing.stop();
    reviews.close();
    const logs = echoing.logLines.join("");
    // What is searched must be there at all, or the search proves nothing.
    expect(logs).toContain("session ended");
    expect(logs).toContain("a token could not be reviewed");
    expect(events).toContain('"requestObject"');
    expect(metrics).toContain('result="token-oversized"');
    expect(metrics).toContain('result="authority-unreachable"');
    for (const text of [logs, metrics, events, answers.join("")]) expect(secrets.foundIn(text)).toEqual([]);
  }
});

function writePolicy(folder: string): object {
  const text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Request }]\n";
  writeFileSync(path.join(folder, "policy.yaml"), text);
  return {};
}
