/** Any API object; its kind selects the strategy. */
export interface ApiObject extends Extensible {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** `Pod/default/web`, `Node//worker`: the object's unique key. */
export function keyOf({ kind, metadata }: ApiObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}

/**
 * A Kubernetes object with the fields that Sluice uses. Other fields stay in the object, and GET
 * returns them unchanged.
 */
export interface Extensible {
  readonly [field: string]: unknown;
}

export interface ObjectMeta extends Extensible {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** RFC 3339. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}
