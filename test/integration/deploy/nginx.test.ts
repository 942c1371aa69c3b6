import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { eventually } from "../../support/eventually.ts";

const hasNginx = spawnSync("nginx", ["-v"]).error === undefined;

/** The example as it is shipped, with its addresses and paths moved into a folder, in front of a server that switches protocols. */
describe.skipIf(!hasNginx)(
  `deploy/examples/nginx.conf in ${hasNginx ? "a real nginx" : "nginx (not installed)"}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-nginx-"));
    const listen = join(folder, "front.sock");
    const seen: IncomingMessage[] = [];
    const upgraded: Duplex[] = [];
    let upstream: Server;
    let nginx: ChildProcess;
    let certificate: string;

    beforeAll(async () => {
      upstream = createServer((request, response) => {
        seen.push(request);
        response.writeHead(403, { "Content-Length": 17 }).end('{"kind":"Status"}');
      });
      upstream.on("upgrade", (request, socket, head) => {
        seen.push(request);
        upgraded.push(socket);
        const protocol = request.headers.upgrade ?? "";
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\nready`,
        );
        socket.write(head);
        socket.pipe(socket);
        socket.on("error", () => socket.destroy());
      });
      upstream.listen(join(folder, "gateway.sock"));
      await once(upstream, "listening");

      const { certPem, keyPem } = await createSelfSignedCertificate();
      certificate = certPem;
      writeFileSync(join(folder, "tls.crt"), certPem);
      writeFileSync(join(folder, "tls.key"), keyPem, { mode: 0o600 });
      const example = readFileSync(new URL("../../../deploy/examples/nginx.conf", import.meta.url), "utf8")
        .replaceAll("/tmp/", `${folder}/`)
        .replace("listen 8443 ssl;", `listen unix:${listen} ssl;`)
        .replace("server gateway:6443;", `server unix:${folder}/gateway.sock;`)
        .replaceAll("/var/lib/sluice/", `${folder}/`)
        .replace("/dev/stderr", `${folder}/error.log`)
        .replace("/dev/stdout", `${folder}/access.log`);
      writeFileSync(join(folder, "nginx.conf"), example);

      const output = openSync(join(folder, "output.log"), "w");
      const options = [
        "-c",
        join(folder, "nginx.conf"),
        "-e",
        join(folder, "error.log"),
        "-g",
        "daemon off; master_process off;",
      ];
      nginx = spawn("nginx", options, { stdio: ["ignore", output, output] });
      closeSync(output);
      await eventually("nginx accepts connections", async () => {
        const socket = dial();
        await once(socket, "secureConnect");
        socket.destroy();
        return true;
      });
    });

    afterAll(async () => {
      for (const socket of upgraded) socket.destroy();
      if (nginx?.exitCode === null) {
        nginx.kill("SIGTERM");
        await once(nginx, "exit");
      }
      upstream.closeAllConnections();
      upstream.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const upgrades = [
      {
        name: "WebSocket",
        request:
          "GET /api/v1/namespaces/default/pods/web/exec?command=a&command=b%20c HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
        headers: { upgrade: "websocket", "sec-websocket-protocol": "v5.channel.k8s.io" },
      },
      {
        name: "SPDY",
        request:
          "POST /api/v1/namespaces/default/pods/web/exec?command=a&command=b%20c HTTP/1.1\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n",
        headers: { upgrade: "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io, v3.channel.k8s.io" },
      },
    ];
    it.each(upgrades)("lets a $name upgrade through, and then bytes in both directions as they come", async ({
      request,
      headers,
    }) => {
      const socket = dial();
      let received = "";
      socket.setEncoding("latin1").on("data", (text: string) => {
        received += text;
      });
      socket.write(
        `${request}Host: localhost:6443\r\nConnection: Upgrade\r\nAuthorization: Bearer x\r\n\r\n`,
      );
      await eventually("the upgrade is answered", () => received.endsWith("\r\n\r\nready"));
      expect(received).toMatch(/^HTTP\/1\.1 101 /);
      expect(received.toLowerCase()).toContain(`upgrade: ${headers.upgrade.toLowerCase()}\r\n`);
      expect(seen.at(-1)?.url).toBe("/api/v1/namespaces/default/pods/web/exec?command=a&command=b%20c");
      expect(seen.at(-1)?.headers).toMatchObject({
        ...headers,
        connection: "upgrade",
        host: "localhost:6443",
        authorization: "Bearer x",
      });
      // A few bytes at a time: nothing may wait for a full buffer.
      for (const part of ["\u0000a", "\u0080\u0003", "end"]) {
        socket.write(part, "latin1");
        await eventually("the bytes come back", () => received.endsWith(part));
      }
      socket.destroy();
    });

    it("passes a refusal of an upgrade on as it is", async () => {
      upstream.removeAllListeners("upgrade");
      const socket = dial();
      socket.write(
        "GET /exec HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
      );
      let received = "";
      for await (const chunk of socket.setEncoding("latin1")) {
        received += chunk;
        if (received.endsWith("}")) break;
      }
      expect(received).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
      expect(received).toMatch(/\{"kind":"Status"\}$/);
    });

    it("keeps commands out of its access log", () => {
      expect(readFileSync(join(folder, "access.log"), "utf8")).not.toContain("command=");
    });

    function dial(): TLSSocket {
      const socket = connect({ path: listen, ca: certificate, servername: "localhost" });
      socket.on("error", () => {});
      return socket;
    }
  },
);
