import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { eventually } from "./eventually.ts";
import { closedPort } from "./misbehaving-servers.ts";
import type { TestCertificate } from "./test-certificates.ts";

export interface NginxPorts {
  readonly http1: number;
  readonly h2c: number;
  readonly tlsH2: number;
}

/**
 * nginx in its own folder: HTTP/1.1, HTTP/2 in cleartext, and TLS with both by ALPN. Needs nginx.
 */
export class NginxProcess {
  readonly #folder = mkdtempSync(path.join(tmpdir(), "sluice-nginx-probe-"));
  #child: ChildProcess | undefined;

  async start({ cert, key }: TestCertificate): Promise<NginxPorts> {
    const file = (name: string) => path.join(this.#folder, name);
    writeFileSync(file("tls.crt"), cert);
    writeFileSync(file("tls.key"), key, { mode: 0o600 });
    const ports = { http1: await closedPort(), h2c: await closedPort(), tlsH2: await closedPort() };
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((name) => `${name}_temp_path ${file(name)};`)
      .join("\n");
    const answer = 'location / { default_type text/plain; return 200 "nginx"; }';
    writeFileSync(
      file("nginx.conf"),
      `daemon off; master_process off; pid ${file("pid")}; error_log ${file("error.log")};
events { worker_connections 64; }
http {
${temporary}
access_log off;
server { listen 127.0.0.1:${ports.http1}; ${answer} }
server { listen 127.0.0.1:${ports.h2c} http2; ${answer} }
server {
  listen 127.0.0.1:${ports.tlsH2} ssl http2;
  ssl_certificate ${file("tls.crt")}; ssl_certificate_key ${file("tls.key")};
  ${answer}
}
}
`,
    );
    this.#child = spawn("nginx", ["-p", this.#folder, "-c", file("nginx.conf"), "-e", file("error.log")], {
      stdio: "ignore",
    });
    await eventually("nginx listens", () => accepts(ports.tlsH2));
    return ports;
  }

  async stop(): Promise<void> {
    if (this.#child?.exitCode === null) {
      const exited = once(this.#child, "exit");
      this.#child.kill("SIGTERM");
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
