import { isRegularExpression } from "../api/networking-objects.ts";
import { remainderOf, requestPathOf } from "./ingress-request.ts";

const STRIP_PREFIX_ANNOTATION = "sluice.dev/strip-prefix";
const REWRITE_PREFIX_ANNOTATION = "sluice.dev/rewrite-prefix";
const NGINX_REWRITE_ANNOTATION = "nginx.ingress.kubernetes.io/rewrite-target";
/** Tells backends the prefix that was rewritten, so that their links work. */
const NGINX_FORWARDED_PREFIX_ANNOTATION = "nginx.ingress.kubernetes.io/x-forwarded-prefix";
const NGINX_REGEX_ANNOTATION = "nginx.ingress.kubernetes.io/use-regex";

export const NGINX_PATH_ANNOTATIONS: readonly string[] = [
  NGINX_REWRITE_ANNOTATION,
  NGINX_REGEX_ANNOTATION,
  NGINX_FORWARDED_PREFIX_ANNOTATION,
];

/** The path rewriting that an Ingress's annotations ask for. */
export type Rewriting = RewritingForm & { readonly forwardedPrefix?: string | undefined };
type RewritingForm =
  | { readonly type: "prefix"; readonly replacement: string }
  /** ingress-nginx: `target` is the text before `$group`; `group` is undefined if there is none. */
  | { readonly type: "nginx"; readonly target: string; readonly group: number | undefined }
  /** ingress-nginx's `use-regex` alone: paths are patterns, and requests keep theirs. */
  | { readonly type: "patterns" };

/** Rewrites one rule's paths for its backend. */
export interface PathRewrite {
  /** The number of path segments that the rule matches. */
  readonly segments: number;
  /** Replaces those segments. */
  readonly replacement: string;
  /**
   * Absent: the rest stays, with its slash. `dropped`: no rest. `bare`: the rest loses its slash.
   * `needed`: as `bare`, and the rule matches only paths with that slash.
   */
  readonly rest?: "dropped" | "bare" | "needed";
  /** For X-Forwarded-Prefix. */
  readonly forwardedPrefix?: string | undefined;
}

/** A rule's path for matching and rewriting. */
interface RulePath {
  readonly path: string;
  readonly isPattern: boolean;
  readonly rewrite?: PathRewrite | undefined;
  readonly problem?: string | undefined;
}

/**
 * The endings of ingress-nginx patterns that mean a prefix, with the number of the group that
 * captures the rest.
 */
const PATTERN_ENDS = [
  { end: "(/|$)(.*)", group: 2, rest: "bare" },
  { end: "/(.*)", group: 1, rest: "needed" },
] as const;
/** Also literal in a pattern; a dot means a dot. */
const LITERAL = /^(?:\/[\w~.-]+)*$/;
/** RFC 3986 section 3.3 without `$`, which begins a group in nginx's targets. */
const PATH = /^\/[\w~.!&'()*+,;=:@%/-]*$/;
const NGINX_TARGET = /^([^$]*)(?:\$(\d))?$/;

/** A malformed annotation is reported as a problem, and paths stay unchanged. */
export function rewritingOf(
  annotations: Readonly<Record<string, string>>,
  problems: string[],
): Rewriting | undefined {
  const form = formOf(annotations, problems);
  const forwardedPrefix = annotations[NGINX_FORWARDED_PREFIX_ANNOTATION];
  if (forwardedPrefix === undefined || form === undefined) return form;
  if (isTarget(forwardedPrefix)) return { ...form, forwardedPrefix };
  problems.push(
    `annotation ${NGINX_FORWARDED_PREFIX_ANNOTATION} must be an absolute path, got ${shown(forwardedPrefix)}`,
  );
  return form;
}

function formOf(
  annotations: Readonly<Record<string, string>>,
  problems: string[],
): RewritingForm | undefined {
  const strips = annotations[STRIP_PREFIX_ANNOTATION];
  if (strips !== undefined && strips !== "true" && strips !== "false")
    problems.push(`annotation ${STRIP_PREFIX_ANNOTATION} must be "true" or "false"`);
  const replacement = annotations[REWRITE_PREFIX_ANNOTATION];
  if (replacement !== undefined) {
    if (strips === "true")
      problems.push(
        `annotations ${STRIP_PREFIX_ANNOTATION} and ${REWRITE_PREFIX_ANNOTATION}: the latter counts`,
      );
    if (isTarget(replacement)) return { type: "prefix", replacement };
    problems.push(
      `annotation ${REWRITE_PREFIX_ANNOTATION} must be an absolute path without query, got ${shown(replacement)}`,
    );
  }
  if (strips === "true") return { type: "prefix", replacement: "/" };
  return nginxRewritingOf(annotations, problems);
}

function nginxRewritingOf(
  annotations: Readonly<Record<string, string>>,
  problems: string[],
): RewritingForm | undefined {
  const text = annotations[NGINX_REWRITE_ANNOTATION];
  if (text === undefined || text === "")
    return annotations[NGINX_REGEX_ANNOTATION] === "true" ? { type: "patterns" } : undefined;
  const [, target = "", group] = NGINX_TARGET.exec(text) ?? [];
  if (isTarget(target))
    return { type: "nginx", target, group: group === undefined ? undefined : Number(group) };
  problems.push(
    `annotation ${NGINX_REWRITE_ANNOTATION} is served as a path, or a path with one group at its end, got ${shown(text)}: requests keep their paths`,
  );
  return undefined;
}

function isTarget(path: string): boolean {
  // Refuses dot segments in every spelling.
  return PATH.test(path) && requestPathOf(path)?.target === path;
}

/** Expects the rule's path as it is written. */
export function rulePathWith(
  rewriting: Rewriting | undefined,
  path: string,
  pathType: string | undefined,
): RulePath {
  const read = readRulePath(rewriting, path, pathType);
  const { rewrite } = read;
  const forwardedPrefix = rewriting?.forwardedPrefix;
  if (rewrite === undefined || forwardedPrefix === undefined) return read;
  return { ...read, rewrite: { ...rewrite, forwardedPrefix } };
}

function readRulePath(
  rewriting: RewritingForm | undefined,
  path: string,
  pathType: string | undefined,
): RulePath {
  if (rewriting === undefined) return { path, isPattern: false };
  if (rewriting.type === "prefix") {
    const replacement = rewriting.replacement.replace(/\/$/, "");
    return { path, isPattern: false, rewrite: { segments: segmentsOf(path), replacement } };
  }
  const pattern = patternOf(path);
  if (rewriting.type === "patterns") return { path: pattern?.path ?? path, isPattern: pattern !== undefined };
  if (pattern === undefined && isRegularExpression(path, pathType)) return { path, isPattern: false };
  return nginxRulePath(rewriting, pattern ?? { path, group: undefined, rest: "bare" }, pattern !== undefined);
}

function nginxRulePath(
  { target, group }: RewritingForm & { readonly type: "nginx" },
  pattern: Pattern,
  isPattern: boolean,
): RulePath {
  const { path } = pattern;
  const segments = segmentsOf(path);
  // nginx rewrites nothing if both are equal.
  if (!isPattern && group === undefined && target === path) return { path, isPattern };
  if (group === undefined || pattern.group === undefined) {
    const rewrite = { segments, replacement: target, rest: "dropped" } as const;
    if (group === undefined) return { path, isPattern, rewrite };
    const problem = `path ${JSON.stringify(path)} has no group for $${group} of ${NGINX_REWRITE_ANNOTATION}: every path becomes ${shown(target)}`;
    return { path, isPattern, rewrite, problem };
  }
  if (group === pattern.group)
    return { path, isPattern, rewrite: { segments, replacement: target, rest: pattern.rest } };
  const problem = `$${group} of ${NGINX_REWRITE_ANNOTATION} is not what is behind ${JSON.stringify(path)}: requests keep their paths`;
  return { path, isPattern, problem };
}

interface Pattern {
  readonly path: string;
  readonly group: number | undefined;
  readonly rest: "bare" | "needed";
}

function patternOf(path: string): Pattern | undefined {
  for (const { end, ...found } of PATTERN_ENDS) {
    if (!path.endsWith(end)) continue;
    const literal = path.slice(0, -end.length);
    if (LITERAL.test(literal)) return { path: literal === "" ? "/" : literal, ...found };
  }
  return undefined;
}

/** Path and query for the backend; undefined if the rule turns out not to match the path. */
export function rewrittenTarget(
  { segments, replacement, rest }: PathRewrite,
  target: string,
): string | undefined {
  const left = remainderOf(target, segments);
  const hasSlash = left.startsWith("/");
  if (rest === undefined) {
    const rewritten = replacement + left;
    return rewritten.startsWith("/") ? rewritten : `/${rewritten}`;
  }
  if (rest === "needed" && !hasSlash) return undefined;
  const queryAt = left.indexOf("?");
  if (rest === "dropped") return queryAt === -1 ? replacement : replacement + left.slice(queryAt);
  return replacement + (hasSlash ? left.slice(1) : left);
}

/** The number of segments in a rule's path; a trailing slash does not count. */
export function segmentsOf(path: string): number {
  return path.replace(/\/$/, "").split("/").length - 1;
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 60));
}
