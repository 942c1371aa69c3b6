import { readdirSync, readFileSync } from "node:fs";
import { createServer, get, type Server } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compiledSources } from "../support/built-program.ts";
import { eventually } from "../support/eventually.ts";
import { backend, INGRESS_CLASS, ingressObject, serviceObjects } from "../support/front-door.ts";
import { GatewayFiles, TESTER_TOKEN, webOn } from "../support/gateway-files.ts";
import { listen } from "../support/http/loopback.ts";
import { ScriptedKubelet } from "../support/scripted-kubelet.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { V5Client } from "../support/v5-client.ts";

/** What one request runs, once warm: a reader who follows it opens so many files. Lower them when a walk gets shorter. */
const MOST = {
  exec: { modules: 126, functions: 580 },
  ingress: { modules: 33, functions: 150 },
} as const;

/** Has V8 write the functions that ran since the last time, at each SIGWINCH. */
const TAKE_COVERAGE = `data:text/javascript,${encodeURIComponent(
  `import { takeCoverage } from "node:v8"; process.on("SIGWINCH", () => takeCoverage());`,
)}`;
const root = path.resolve(import.meta.dirname, "../..");

interface CoverageFile {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
    }[];
  }[];
}

describe("a warm request walks through few modules and functions", () => {
  const files = new GatewayFiles();
  const kubelet = new ScriptedKubelet({
    onStream: (_name, _stream, { streams, socket }) => {
      if (streams.size < 3) return;
      streams.get("stdout")?.write(Buffer.from("hello\n"));
      streams.get("stdout")?.finish();
      streams.get("error")?.write(Buffer.from('{"status":"Success","metadata":{}}'));
      streams.get("error")?.finish();
      socket.end();
    },
  });
  let pod: Server;
  let gateway: ServedGateway;
  let taken = 0;

  beforeAll(async () => {
    pod = createServer((_request, response) => response.end("hello"));
    const podPort = await listen(pod);
    const objects = [
      INGRESS_CLASS,
      ...serviceObjects("app", [{ port: podPort }]),
      ingressObject("all", { defaultBackend: backend("app") }),
    ];
    files.configure({
      ...webOn(await kubelet.listen()),
      listeners: { ingress: { httpPort: 0, httpsPort: 0, allowedEndpointAddresses: ["127.0.0.0/8"] } },
      configuration: {
        cluster: {
          manifests: [
            "cluster.json",
            files.write("door.json", JSON.stringify({ apiVersion: "v1", kind: "List", items: objects })),
          ],
        },
      },
    });
    gateway = await serveGateway(files.configurationFile, {
      nodeArguments: ["--import", TAKE_COVERAGE],
      program: path.join(compiledSources(), "main.js"),
      environment: { NODE_V8_COVERAGE: path.join(files.folder, "coverage") },
    });
  });

  afterAll(async () => {
    await gateway?.stop();
    await kubelet.close();
    pod?.close();
    files.remove();
  });

  /** Functions of ours that ran since the last call, by module. */
  async function ranSince(): Promise<ReadonlyMap<string, number>> {
    const folder = path.join(files.folder, "coverage");
    gateway.child.kill("SIGWINCH");
    taken += 1;
    const text = await eventually("V8 writes its coverage", () => {
      const names = existing(folder).toSorted();
      return names.length < taken ? undefined : wholeJson(path.join(folder, names.at(-1) ?? ""));
    });
    const ran = new Map<string, number>();
    for (const { url, functions } of text.result) {
      if (!url.startsWith("file:") || url.includes("/node_modules/")) continue;
      const count = functions.filter(({ ranges: [whole] }) => (whole?.count ?? 0) > 0).length;
      if (count > 0) ran.set(path.relative(root, fileURLToPath(url)), count);
    }
    return ran;
  }

  it.each([
    ["exec", exec],
    ["ingress", ingress],
  ] as const)("%s", async (name, request) => {
    for (let warm = 0; warm < 3; warm++) await request();
    await ranSince();
    let ran: ReadonlyMap<string, number> = new Map();
    // Timers run beside a request; what runs in each of three belongs to it.
    for (let round = 0; round < 3; round++) {
      await request();
      const now = await ranSince();
      ran =
        round === 0
          ? now
          : new Map(
              [...now]
                .filter(([module]) => ran.has(module))
                .map(([module, count]) => [module, Math.min(count, ran.get(module) ?? 0)]),
            );
    }
    const functions = [...ran.values()].reduce((sum, count) => sum + count, 0);
    expect(ran.size).toBeGreaterThan(MOST[name].modules / 4);
    expect([...ran.keys()].slice(MOST[name].modules)).toEqual([]);
    expect(functions).toBeLessThanOrEqual(MOST[name].functions);
  });

  async function exec(): Promise<void> {
    const query = "command=true&stdin=true&stdout=true";
    const client = new V5Client(gateway.authority, query, "exec", {
      Authorization: `Bearer ${TESTER_TOKEN}`,
    });
    expect((await client.done).stdout.toString()).toBe("hello\n");
  }

  async function ingress(): Promise<void> {
    const url = gateway.ready.ingress?.httpUrl ?? "";
    const body = await new Promise<string>((resolve, reject) => {
      get(url, async (response) => {
        let text = "";
        for await (const part of response) text += part;
        resolve(text);
      }).on("error", reject);
    });
    expect(body).toBe("hello");
  }
});

function existing(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Undefined while the file is being written. */
function wholeJson(file: string): CoverageFile | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as CoverageFile;
  } catch {
    return undefined;
  }
}
