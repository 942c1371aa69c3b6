import type { HeaderList } from "../http/header-list.ts";

const MASK = "[credentials]";
const CREDENTIAL_HEADERS = ["authorization", "cookie", "proxy-authorization"];
/** A server's text may be cut in the middle of a credential: what begins as one does is taken for it. */
const TELLING_CHARACTERS = 16;
/** A shorter one would mask ordinary words. */
const MIN_CHARACTERS = 4;
/** What tokens, Base64 and cookies consist of. */
const REST = /^[\w.~+/=%-]+/;

/** Removes what an endpoint was opened with from what servers write: they echo headers, and reports are shared. */
export class CredentialMask {
  readonly #secrets = new Set<string>();

  /** Credentials among the lines of a request, in the forms that they are sent in. */
  learn(headers: HeaderList): void {
    for (const [name, value] of headers) {
      if (!CREDENTIAL_HEADERS.includes(name.toLowerCase())) continue;
      const credential = value.slice(value.indexOf(" ") + 1);
      const decoded = /^basic /i.test(value) ? Buffer.from(credential, "base64").toString() : "";
      const password = decoded.slice(decoded.indexOf(":") + 1);
      // Browsers' form of a token, as a subprotocol.
      const subprotocol = Buffer.from(credential).toString("base64url");
      for (const secret of [credential, password, subprotocol])
        if (secret.length >= MIN_CHARACTERS) this.#secrets.add(secret);
    }
  }

  masked(text: string): string {
    return [...this.#secrets].reduce(withoutSecret, text);
  }
}

function withoutSecret(text: string, secret: string): string {
  const [before = "", ...rest] = text.split(secret.slice(0, TELLING_CHARACTERS));
  const isWhole = secret.length <= TELLING_CHARACTERS;
  return before + rest.map((part) => MASK + (isWhole ? part : part.replace(REST, ""))).join("");
}
