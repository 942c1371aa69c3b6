import { MalformedAnswerError } from "./api-client.ts";

/**
 * Objects of one list, three times the pods that Kubernetes supports; an empty page counts as one.
 * Past it the list is malformed and tried again later; the objects of the last one stay.
 */
export const MAX_LISTED_OBJECTS = 500_000;

interface ListPage {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly kind?: string;
  readonly items?: readonly unknown[] | null;
}

/**
 * The pages of a collection's list. Returns its version. Throws MalformedAnswerError for what is not
 * a list, and for pages that do not end.
 */
export async function* listPages(
  get: (continueAt: string | undefined) => Promise<unknown>,
): AsyncGenerator<readonly unknown[], string> {
  let listed = 0;
  for (let at: string | undefined; ; ) {
    const { kind, items, metadata } = ((await get(at)) ?? {}) as ListPage;
    if (!kind?.endsWith("List") || metadata?.resourceVersion === undefined) {
      throw new MalformedAnswerError("the API server's answer is not a list");
    }
    yield items ?? [];
    listed += Math.max(1, items?.length ?? 0);
    const { continue: next = "", resourceVersion } = metadata;
    if (next === "") return resourceVersion;
    if (next === at || listed >= MAX_LISTED_OBJECTS) {
      throw new MalformedAnswerError("the pages of the API server's list do not end");
    }
    at = next;
  }
}
