import type { Server } from "node:http";
import { type ListenerPort, listenerPorts } from "../config/sections/listeners.ts";
import { startListener } from "../listeners/component.ts";
import type { ReservedEndpoint } from "../net/address-rules.ts";
import { type Listen, type ListenAddress, urlOf } from "../net/listen.ts";

type ConfiguredListeners = Parameters<typeof listenerPorts>[0];

/** The listeners' URLs by name; undefined if a listener is off. */
export type ListenerUrls = Readonly<Record<string, string | undefined>>;

/** The ports that this process opens, from the configuration's list of listeners. */
export class OpenListeners {
  readonly #ports: ReadonlyMap<string, ListenerPort>;
  readonly #listen: Listen;
  readonly #at = new Map<string, ListenAddress>();

  constructor(configured: ConfiguredListeners, listen: Listen) {
    this.#ports = new Map(listenerPorts(configured).map((port) => [port.name, port]));
    this.#listen = listen;
  }

  /** Starts listening at the configured address of this listener, as a component. */
  start(name: string, server: Server): ReturnType<typeof startListener> {
    const port = this.#ports.get(name);
    if (port === undefined) throw new Error(`no listener ${name} is configured`);
    return startListener(server, (each) => this.listen(each, name, port));
  }

  /** Listens as the given function does, for a component that opens its ports itself. */
  readonly listen: Listen = async (server, name, where) => {
    const at = await this.#listen(server, name, where);
    this.#at.set(name, at);
    return at;
  };

  urls(): ListenerUrls {
    return urlsOf([...this.#ports.values()], (name) => this.#at.get(name));
  }

  /** Endpoints that no node may have, including the ports that the system assigned. */
  reserved(): ReservedEndpoint[] {
    return [...this.#ports.values()]
      .filter(({ isReserved }) => isReserved)
      .flatMap(({ name, address, port }) => [{ address, port }, this.#at.get(name)])
      .flatMap((at) => (at === undefined || at.port === 0 ? [] : [{ host: at.address, port: at.port }]));
  }
}

/** The listeners' URLs, including those that another process opened. */
export function urlsOf(
  ports: readonly ListenerPort[],
  addressOf: (name: string) => ListenAddress | undefined,
): ListenerUrls {
  return Object.fromEntries(
    ports.map(({ name, scheme }) => {
      const at = addressOf(name);
      return [name, at && urlOf(scheme, at)];
    }),
  );
}

/** The fields of "the gateway is ready": `adminUrl`, and `ingress.httpUrl` of an object `ingress`. */
export function readyFields(urls: ListenerUrls): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, url] of Object.entries(urls)) {
    const [first = "", second] = name.split(".");
    if (second === undefined) fields[`${first}Url`] = url;
    else fields[first] = { ...(fields[first] as object | undefined), [`${second}Url`]: url };
  }
  return fields;
}
