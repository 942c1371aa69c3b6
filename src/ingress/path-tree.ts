export type PathType = "Exact" | "Prefix" | "ImplementationSpecific";

/** A prefix rule, stored at its last element. */
interface PrefixRule<Backend> {
  readonly path: string;
  readonly backend: Backend;
}

interface Element<Backend> {
  rule: PrefixRule<Backend> | undefined;
  children: Map<string, Element<Backend>> | undefined;
}

/**
 * One host's paths (KEP-1453). Exact beats Prefix, the longest Prefix wins, the first of equal
 * rules stays. A lookup's steps depend on the path's elements, not on the number of rules.
 */
export class PathTree<Backend> {
  readonly #exact = new Map<string, Backend>();
  readonly #root: Element<Backend> = { rule: undefined, children: undefined };

  /** Call in order of precedence: an existing rule stays. True if the rule was added. */
  add(pathType: PathType, path: string, backend: Backend): boolean {
    if (pathType === "Exact") {
      if (this.#exact.has(path)) return false;
      this.#exact.set(path, backend);
      return true;
    }
    // ImplementationSpecific means Prefix here, and an empty path matches everything.
    return this.#addPrefix(path === "" ? "/" : path, backend);
  }

  /** `path` begins with `/`. */
  match(path: string): Backend | undefined {
    return this.#exact.get(path) ?? this.#longestPrefix(path);
  }

  #addPrefix(path: string, backend: Backend): boolean {
    let element = this.#root;
    for (const name of elementsOf(path)) {
      element.children ??= new Map();
      let child = element.children.get(name);
      if (child === undefined) {
        child = { rule: undefined, children: undefined };
        element.children.set(name, child);
      }
      element = child;
    }
    // `/foo` and `/foo/` match the same requests; the longer string takes precedence.
    if (element.rule !== undefined && element.rule.path.length >= path.length) return false;
    element.rule = { path, backend };
    return true;
  }

  #longestPrefix(path: string): Backend | undefined {
    let element = this.#root;
    let found = element.rule;
    let start = 1;
    while (element.children !== undefined && start <= path.length) {
      const slash = path.indexOf("/", start);
      const end = slash === -1 ? path.length : slash;
      const child = element.children.get(path.slice(start, end));
      if (child === undefined) break;
      element = child;
      if (element.rule !== undefined) found = element.rule;
      start = end + 1;
    }
    return found?.backend;
  }
}

/** A rule path's elements, without a trailing slash. */
function elementsOf(path: string): string[] {
  const trimmed = path.endsWith("/") ? path.slice(1, -1) : path.slice(1);
  return trimmed === "" && path.length <= 1 ? [] : trimmed.split("/");
}
