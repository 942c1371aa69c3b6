import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { builtProgram } from "../support/built-program.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as { version: string };
const PACKAGES = ["@sluice/protocols", "@sluice/client", "sluice"];

interface Manifest {
  readonly name: string;
  readonly gitHead?: string;
  readonly private?: boolean;
  readonly bin?: object;
  readonly bugs: { readonly url: string };
  readonly homepage: string;
  readonly repository: { readonly url: string; readonly directory?: string };
}

/** As npm's registry: 404 for what is not there, a document for each package, 403 for a version that is there. */
class FakeRegistry {
  readonly published = new Map<string, Manifest>();
  /** The package whose publication fails. */
  failing: string | undefined;
  /** The scope or name that the account may not publish to. */
  refused: string | undefined;
  readonly #server = createServer(async (request, response) => {
    const name = decodeURIComponent(new URL(request.url ?? "/", "http://registry").pathname.slice(1));
    const answer = (status: number, body: object) => {
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (request.method === "PUT") {
      const { versions } = JSON.parse(await text(request)) as { versions: Record<string, Manifest> };
      const manifest = versions[version];
      if (this.refused !== undefined && name.startsWith(this.refused))
        return answer(403, { error: `You do not have permission to publish "${name}".` });
      if (name === this.failing || manifest === undefined) return answer(400, { error: "out of order" });
      if (this.published.has(name)) return answer(403, { error: "cannot publish over the existing version" });
      this.published.set(name, manifest);
      return answer(201, { ok: true });
    }
    const manifest = this.published.get(name);
    if (manifest === undefined) return answer(404, { error: "not_found" });
    return answer(200, { name, "dist-tags": { latest: version }, versions: { [version]: manifest } });
  });

  async listen(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

describe("npm packages are published", () => {
  const registry = new FakeRegistry();
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-publish-test-"));
  let environment: Record<string, string | undefined>;

  beforeAll(async () => {
    builtProgram();
    const port = await registry.listen();
    const settings = path.join(folder, "npmrc");
    writeFileSync(
      settings,
      `registry=http://127.0.0.1:${port}/\n//127.0.0.1:${port}/:_authToken=token\nfetch-retries=0\naudit=false\n`,
    );
    environment = {
      PATH: process.env.PATH,
      HOME: folder,
      npm_config_userconfig: settings,
      npm_config_cache: path.join(folder, "cache"),
      GITHUB_REPOSITORY: "example/sluice",
    };
  });
  afterEach(() => {
    registry.published.clear();
    registry.failing = undefined;
    registry.refused = undefined;
  });
  afterAll(() => {
    registry.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function publish(tag = `v${version}`) {
    const child = spawn(process.execPath, ["scripts/release-packages.mjs", "--publish", tag], {
      cwd: root,
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, problems, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "exit"),
    ]);
    const lines = [...out.split("\n"), ...problems.split("\n")].filter((line) =>
      /^(?:@sluice\/|sluice@)/.test(line),
    );
    return { status: status as number, lines, problems };
  }

  it("in order of their dependencies; a run that failed halfway is completed by the next", async () => {
    registry.failing = "@sluice/client";
    const first = await publish();
    expect(first).toMatchObject({
      status: 1,
      lines: [
        `@sluice/protocols@${version} is published`,
        `@sluice/client@${version} is not published: run this again, it skips those that are`,
      ],
    });
    expect([...registry.published.keys()]).toEqual(["@sluice/protocols"]);
    registry.failing = undefined;
    expect(await publish()).toMatchObject({
      status: 0,
      lines: [
        `@sluice/protocols@${version} is published already`,
        `@sluice/client@${version} is published`,
        `sluice@${version} is published`,
      ],
    });
    expect([...registry.published.keys()]).toEqual(PACKAGES);
    for (const [name, manifest] of registry.published) {
      expect(manifest.private).toBeUndefined();
      expect(manifest.homepage).toBe("https://github.com/example/sluice#readme");
      expect(manifest.bugs.url ?? manifest.bugs).toBe("https://github.com/example/sluice/issues");
      expect(manifest.repository.url).toBe("git+https://github.com/example/sluice.git");
      expect(Object.keys(manifest.bin ?? {})).toHaveLength(name === "sluice" ? 3 : 0);
    }
  }, 120_000);

  it("never over a version of another commit, and never for another tag", async () => {
    const repository = { url: "git+https://github.com/example/sluice.git" };
    const other = { name: "@sluice/protocols", gitHead: "0".repeat(40), repository } as Manifest;
    registry.published.set("@sluice/protocols", other);
    const { status, lines } = await publish();
    expect([status, lines]).toEqual([
      1,
      [
        `@sluice/protocols@${version} is published from another commit: a version is never replaced, tag a new one`,
      ],
    ]);
    registry.published.clear();
    const wrong = await publish("v9.9.9");
    expect(wrong.status).toBe(1);
    expect(wrong.problems).toContain(`.: version ${version} is not that of v9.9.9`);
    expect(registry.published.size).toBe(0);
  }, 60_000);

  it("not at all where packages of another project, or that name none, have the last names", async () => {
    const others = { "@sluice/client": "git+https://github.com/stranger/client.git", sluice: undefined };
    for (const [name, url] of Object.entries(others))
      registry.published.set(name, { name, ...(url && { repository: { url } }) } as Manifest);
    const { status, problems } = await publish();
    expect(status).toBe(1);
    for (const [name, url = "no repository"] of Object.entries(others))
      expect(problems).toContain(
        `${name} is taken: its package names ${url}, not git+https://github.com/example/sluice.git`,
      );
    expect([...registry.published.keys()]).toEqual(Object.keys(others));
  }, 60_000);

  it("not in a scope that is another's, and no second run is advised", async () => {
    registry.refused = "@sluice/";
    const { status, lines } = await publish();
    expect([status, lines]).toEqual([
      1,
      [
        `@sluice/protocols@${version} is not published: the registry refuses it to this account. Its scope belongs to another, or does not trust this workflow: CONTRIBUTING.md, "Releases"`,
      ],
    ]);
    expect(registry.published.size).toBe(0);
  }, 60_000);

  it("by no plain npm publish: every package.json of the repository is private", () => {
    for (const source of [".", "protocols", "packages/client", "packages/lab", "packages/cli"])
      expect(JSON.parse(readFileSync(path.join(root, source, "package.json"), "utf8"))).toMatchObject({
        private: true,
        version,
      });
  });
});
