import type { ApiObject } from "../../api/api-object.ts";
import {
  INGRESS_CLASS_ANNOTATION,
  type Ingress,
  type IngressClass,
  isRegularExpression,
} from "../../api/networking-objects.ts";
import { rulePathWith } from "../../ingress/path-rewrite.ts";
import { routeOptionsOf, SERVED_FOREIGN_ANNOTATIONS } from "../../ingress/route-options.ts";

/** The classes that this gateway serves. */
export interface OwnClasses {
  readonly controllerName: string;
  readonly legacyClassName: string | undefined;
}

/** Annotations of other controllers, which have no effect here. */
const FOREIGN_ANNOTATION =
  /^(?:(?:nginx|haproxy|traefik|alb|appgw|contour)\.ingress\.kubernetes\.io|ingress\.kubernetes\.io|nginx\.(?:org|com)|haproxy\.(?:org|com)|haproxy-ingress\.github\.io|konghq\.com|projectcontour\.io|ingress\.cilium\.io|ingress\.pomerium\.io)\//;
/** The class names that other controllers install. */
const FOREIGN_CLASSES: ReadonlySet<string> = new Set(
  "nginx haproxy traefik alb gce gce-internal kong contour cilium istio pomerium azure-application-gateway".split(
    " ",
  ),
);
const MAX_SHOWN_ANNOTATIONS = 5;

/**
 * Warns about Ingress settings that this gateway ignores, by the classes among the objects and
 * well-known names.
 */
export function ingressWarnings(objects: readonly ApiObject[], own: OwnClasses): string[] {
  const classes = new Map(
    objects
      .filter((object): object is IngressClass & ApiObject => object.kind === "IngressClass")
      .map(({ metadata, spec }) => [metadata.name, spec?.controller]),
  );
  return objects
    .filter((object): object is Ingress & ApiObject => object.kind === "Ingress")
    .flatMap((ingress) => {
      const name = `Ingress ${ingress.metadata.namespace ?? "default"}/${ingress.metadata.name}`;
      return warningsOf(ingress, classes, own).map((warning) => `${name}: ${warning}`);
    });
}

function warningsOf(
  { metadata, spec }: Ingress,
  classes: ReadonlyMap<string, string | undefined>,
  own: OwnClasses,
): string[] {
  const { annotations = {} } = metadata;
  const warnings: string[] = [];
  const annotated = annotations[INGRESS_CLASS_ANNOTATION];
  const named = annotated ?? spec?.ingressClassName;
  if (named !== undefined && isForeign(named, annotated !== undefined, classes, own)) {
    const controller = JSON.stringify(own.controllerName);
    warnings.push(
      `class ${JSON.stringify(named)} is another controller's, so it is not served: its IngressClass would need spec.controller ${controller}`,
    );
  }
  const foreign = Object.keys(annotations).filter(
    (key) => FOREIGN_ANNOTATION.test(key) && !SERVED_FOREIGN_ANNOTATIONS.has(key),
  );
  if (foreign.length > 0) {
    const shown = foreign.slice(0, MAX_SHOWN_ANNOTATIONS).join(", ");
    const more =
      foreign.length > MAX_SHOWN_ANNOTATIONS ? ` and ${foreign.length - MAX_SHOWN_ANNOTATIONS} more` : "";
    warnings.push(`annotations of other controllers have no effect here: ${shown}${more}`);
  }
  const { options, problems } = routeOptionsOf({ metadata });
  warnings.push(...problems);
  const paths = (spec?.rules ?? []).flatMap(({ http }) => http?.paths ?? []);
  for (const { path = "", pathType } of paths) {
    const { isPattern, problem } = rulePathWith(options.rewriting, path, pathType);
    if (problem !== undefined) warnings.push(problem);
    if (!isPattern && isRegularExpression(path, pathType)) {
      warnings.push(
        `path ${JSON.stringify(path)} looks like a regular expression and is matched literally, as a prefix`,
      );
    }
  }
  return warnings;
}

function isForeign(
  name: string,
  isLegacy: boolean,
  classes: ReadonlyMap<string, string | undefined>,
  own: OwnClasses,
): boolean {
  if (classes.has(name)) return classes.get(name) !== own.controllerName;
  return !(isLegacy && name === own.legacyClassName) && FOREIGN_CLASSES.has(name);
}
