import { writeFileSync } from "node:fs";
import path from "node:path";
import type { ApiObject } from "../../src/api/api-object.ts";
import { TestApiServer } from "./api-server/test-api-server.ts";

/**
 * The source of a front door's routes: a manifest file, its own live API, or one that it shares
 * with others.
 */
export type DoorSource = "manifests" | "live" | TestApiServer;

export interface DoorCluster {
  /** The gateway's section `cluster`. */
  readonly configuration: object;
  /** The server, if the source is a live API. */
  readonly server: TestApiServer | undefined;
  /** Makes these the only objects of this door's test. */
  write(objects: readonly object[]): void;
  stop(): Promise<void>;
}

export async function startDoorCluster(source: DoorSource, folder: string): Promise<DoorCluster> {
  if (source === "manifests") return manifestsIn(folder);
  const server = source === "live" ? await TestApiServer.start() : source;
  await server.writeKubeconfig(path.join(folder, "kubeconfig"));
  let written = new Map<string, ApiObject>();
  return {
    configuration: { kubeconfig: "kubeconfig" },
    server,
    write: (objects) => {
      const next = new Map((objects as readonly ApiObject[]).map((object) => [keyOf(object), object]));
      for (const [key, { kind, metadata }] of written) {
        if (!next.has(key)) server.remove(kind, metadata.namespace ?? "", metadata.name);
      }
      for (const object of next.values()) server.apply(object);
      written = next;
    },
    stop: async () => {
      if (source === "live") await server.stop();
    },
  };
}

function manifestsIn(folder: string): DoorCluster {
  return {
    configuration: { manifests: ["routes.json"] },
    server: undefined,
    write: (items) =>
      writeFileSync(
        path.join(folder, "routes.json"),
        JSON.stringify({ apiVersion: "v1", kind: "List", items }),
      ),
    stop: () => Promise.resolve(),
  };
}

function keyOf({ kind, metadata: { namespace = "", name } }: ApiObject): string {
  return `${kind} ${namespace}/${name}`;
}
