import { type AnsweredClient, http1Client, http2Client } from "./answered.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "./front-door.ts";
import { type ScriptedBackend, startScriptedBackend } from "./scripted-backend.ts";

/** The host of each backend, keyed by its version of HTTP. */
export const HOSTS = { "http/1.1": "one.test", h2c: "two.test" } as const;

/** A front door with a scripted backend and a client for each version of HTTP. */
export interface ScriptedDoor {
  readonly backends: Readonly<Record<keyof typeof HOSTS, ScriptedBackend>>;
  readonly clients: Readonly<Record<"h1" | "h2", AnsweredClient>>;
  stop(): Promise<void>;
}

export async function startScriptedDoor(): Promise<ScriptedDoor> {
  const one = await startScriptedBackend("http/1.1");
  const two = await startScriptedBackend("h2c");
  const rule = (host: string, service: string) => ({
    host,
    http: { paths: [{ path: "/", pathType: "Prefix", backend: backend(service) }] },
  });
  const objects = [
    ...serviceObjects("one", [one]),
    ...serviceObjects("two", [two], { appProtocol: "kubernetes.io/h2c" }),
    ingressObject("both", { rules: [rule(HOSTS["http/1.1"], "one"), rule(HOSTS.h2c, "two")] }),
  ];
  // An exchange that a test breaks stays in flight until then.
  const door = await FrontDoor.start(objects, {}, { timeouts: { shutdownGracePeriod: "0s" } });
  await door.serves(1);
  const clients = { h1: http1Client(door.httpPort), h2: http2Client(`http://127.0.0.1:${door.httpPort}`) };
  return {
    backends: { "http/1.1": one, h2c: two },
    clients,
    stop: async () => {
      clients.h2.close();
      await door.stop();
      await Promise.all([one.stop(), two.stop()]);
    },
  };
}
