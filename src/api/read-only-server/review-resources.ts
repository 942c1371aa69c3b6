/**
 * Self-reviews: clients POST them and get the answer at once; nothing is stored. The gateway
 * answers them; discovery announces them.
 */
export interface ReviewResource {
  readonly group: string;
  readonly version: string;
  readonly name: string;
  readonly kind: string;
}

const AUTHORIZATION = "authorization.k8s.io";
const AUTHENTICATION = "authentication.k8s.io";

export const reviewResources: readonly ReviewResource[] = [
  {
    group: AUTHENTICATION,
    version: "v1",
    name: "selfsubjectreviews",
    kind: "SelfSubjectReview",
  },
  // kubectl 1.27 posts its SelfSubjectReview in this version.
  {
    group: AUTHENTICATION,
    version: "v1beta1",
    name: "selfsubjectreviews",
    kind: "SelfSubjectReview",
  },
  {
    group: AUTHORIZATION,
    version: "v1",
    name: "selfsubjectaccessreviews",
    kind: "SelfSubjectAccessReview",
  },
  {
    group: AUTHORIZATION,
    version: "v1",
    name: "selfsubjectrulesreviews",
    kind: "SelfSubjectRulesReview",
  },
];

/** The review at a path, or undefined. */
export function reviewAt(path: string): ReviewResource | undefined {
  return reviewResources.find(({ group, version, name }) => path === `/apis/${group}/${version}/${name}`);
}

/** The reviews of one group and version. */
export function reviewsOf(group: string, version: string): readonly ReviewResource[] {
  return reviewResources.filter((review) => review.group === group && review.version === version);
}
