import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { createSelfSignedCertificate } from "../../packages/client/src/net/self-signed.ts";
import { eventually } from "./eventually.ts";
import { freePorts } from "./http/loopback.ts";

/** Another project's L7 gateway with TLS, in front of a plain HTTP port. */
export interface Layer7Proxy {
  readonly url: string;
  /** Its certificate as PEM. */
  readonly authority: string;
  stop(): Promise<void>;
}

/** The shipped example, with its addresses and paths replaced. */
function exampleText(name: string): string {
  return readFileSync(new URL(`../../deploy/examples/${name}`, import.meta.url), "utf8");
}

export function startNginx(upstreamPort: number): Promise<Layer7Proxy> {
  return startProxy((folder, port) => {
    const text = exampleText("nginx.conf")
      .replaceAll("/tmp/", `${folder}/`)
      .replace("listen 8443 ssl;", `listen 127.0.0.1:${port} ssl;`)
      .replace("server gateway:6443;", `server 127.0.0.1:${upstreamPort};`)
      .replaceAll("/var/lib/sluice/", `${folder}/`)
      .replace("/dev/stderr", `${folder}/error.log`)
      .replace("/dev/stdout", `${folder}/access.log`);
    const file = path.join(folder, "nginx.conf");
    writeFileSync(file, text);
    return [
      "nginx",
      "-c",
      file,
      "-e",
      path.join(folder, "error.log"),
      "-g",
      "daemon off; master_process off;",
    ];
  });
}

/** `refusesSpdy`: only WebSockets may pass, as a comment in the example suggests. */
export function startHaproxy(upstreamPort: number, refusesSpdy = false): Promise<Layer7Proxy> {
  return startProxy((folder, port) => {
    let text = exampleText("haproxy.cfg")
      .replace(
        "bind :8443 ssl crt /var/lib/sluice/tls.pem",
        `bind 127.0.0.1:${port} ssl crt ${folder}/tls.pem`,
      )
      .replace("server gateway gateway:8080", `server gateway 127.0.0.1:${upstreamPort}`);
    if (refusesSpdy) text = text.replace("# http-request deny", "http-request deny");
    const file = path.join(folder, "haproxy.cfg");
    writeFileSync(file, text);
    return ["haproxy", "-db", "-f", file];
  });
}

/**
 * Starts a program with a certificate in its folder (tls.crt, tls.key; tls.pem has both), on a port
 * of its own.
 */
export async function startProxy(
  commandFor: (folder: string, port: number) => readonly string[],
): Promise<Layer7Proxy> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-layer7-"));
  const { certPem, keyPem } = await createSelfSignedCertificate();
  writeFileSync(path.join(folder, "tls.crt"), certPem);
  writeFileSync(path.join(folder, "tls.key"), keyPem, { mode: 0o600 });
  writeFileSync(path.join(folder, "tls.pem"), `${certPem}\n${keyPem}`, { mode: 0o600 });
  // These programs do not accept port 0. Another program may take the port first, so another one is
  // tried.
  for (let attempt = 0; ; attempt++) {
    const [port = 0] = await freePorts(1);
    const [program = "", ...arguments_] = commandFor(folder, port);
    const child = spawn(program, arguments_, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    });
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4_000);
    });
    try {
      await eventually(
        () => `${program} accepts connections; it said ${said}`,
        () => {
          if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
          return accepts(port);
        },
      );
      return {
        url: `https://127.0.0.1:${port}`,
        authority: certPem,
        stop: async () => {
          await stopChild(child);
          rmSync(folder, { recursive: true, force: true });
        },
      };
    } catch (error) {
      await stopChild(child);
      if (attempt === 2) {
        rmSync(folder, { recursive: true, force: true });
        throw error;
      }
    }
  }
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

async function accepts(port: number): Promise<boolean> {
  const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  socket.destroy();
  return true;
}
