import type { CST } from "yaml";

/** The tokens directly inside of one. */
export function* childrenOf(token: CST.Token): Generator<CST.Token> {
  if (token.type === "document" && token.value) {
    yield token.value;
  }
  if ("items" in token) {
    for (const item of token.items) {
      if (item.key) {
        yield item.key;
      }
      if (item.value) {
        yield item.value;
      }
    }
  }
}
