import type { HeaderList } from "@sluice/client/internal/http/header-list";

const MASK = "[credentials]";
const CREDENTIAL_HEADERS = ["authorization", "cookie", "proxy-authorization"];
/** A server may cut a credential off: text that starts like one is masked, too. */
const TELLING_CHARACTERS = 16;
/** Masking a shorter one would hide ordinary words. */
const MIN_CHARACTERS = 4;
/** The characters of tokens, Base64 and cookies. */
const REST = /^[\w.~+/=%-]+/;

/**
 * Removes the endpoint's credentials from server output, because servers echo headers and users
 * share reports.
 */
export class CredentialMask {
  readonly #secrets = new Set<string>();

  /** Collects the credentials in a request's headers, in every form in which they are sent. */
  learn(headers: HeaderList): void {
    for (const [name, value] of headers) {
      if (!CREDENTIAL_HEADERS.includes(name.toLowerCase())) continue;
      const credential = value.slice(value.indexOf(" ") + 1);
      const decoded = /^basic /i.test(value) ? Buffer.from(credential, "base64").toString() : "";
      const password = decoded.slice(decoded.indexOf(":") + 1);
      // Browsers send a token in this form, as a subprotocol.
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
