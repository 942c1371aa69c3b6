import type { ServerResponse } from "node:http";

/** The output of `pods/NAME/log`: the text so far, and with `follow` the text to come. */
export class PodLogs {
  readonly #texts = new Map<string, string>();
  readonly #followers = new Map<string, Set<ServerResponse>>();

  append(namespace: string, name: string, text: string): void {
    const key = `${namespace}/${name}`;
    this.#texts.set(key, (this.#texts.get(key) ?? "") + text);
    for (const response of this.#followers.get(key) ?? []) response.write(text);
  }

  /** The container has ended, so followed logs end, too. */
  end(namespace: string, name: string): void {
    for (const response of this.#followers.get(`${namespace}/${name}`) ?? []) response.end();
  }

  get followers(): number {
    return [...this.#followers.values()].reduce((sum, { size }) => sum + size, 0);
  }

  answer(namespace: string, name: string, query: URLSearchParams, response: ServerResponse): void {
    const key = `${namespace}/${name}`;
    const text = this.#texts.get(key) ?? "";
    response.writeHead(200, { "Content-Type": "text/plain" });
    if (query.get("follow") !== "true") {
      response.end(text);
      return;
    }
    response.flushHeaders();
    if (text !== "") response.write(text);
    const followers = this.#followers.get(key) ?? new Set();
    this.#followers.set(key, followers);
    followers.add(response);
    response.once("close", () => followers.delete(response));
  }
}
