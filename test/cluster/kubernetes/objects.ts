import { BUSYBOX_IMAGE } from "../../real/containerd/busybox-images.ts";
import { NODE_NAME } from "./credentials.ts";

export const HTTP_PORT = 8080;

/** What every test of the suite finds in the namespace `default`. */
export function clusterObjects(): object[] {
  return [
    pod("web", [
      { name: "main", command: ["httpd", "-f", "-p", `127.0.0.1:${HTTP_PORT}`, "-h", "/www"] },
      { name: "side", command: ["sleep", "infinity"] },
    ]),
    pod("echoer", [
      { name: "main", stdin: true, command: shell("while read l; do echo got:$l; done; sleep infinity") },
    ]),
    pod("finite", [{ name: "main", command: shell("seq 1 2000; echo err >&2; exit 5") }], "Never"),
    pod("crashing", [{ name: "main", command: shell("echo attempt; exit 3") }]),
    service(),
    ...readers(),
    ...rolesOfKubelets(),
  ];
}

interface ContainerFields {
  readonly name: string;
  readonly command: readonly string[];
  readonly stdin?: boolean;
}

function shell(script: string): string[] {
  return ["/bin/sh", "-c", script];
}

/** On the only node. */
export function pod(name: string, containers: readonly ContainerFields[], restartPolicy = "Always"): object {
  const image = { image: BUSYBOX_IMAGE, imagePullPolicy: "Never" };
  const ports = name === "web" ? [{ containerPort: HTTP_PORT, name: "http" }] : [];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels: { app: name } },
    spec: {
      nodeName: NODE_NAME,
      restartPolicy,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: containers.map((container) => ({
        ...container,
        ...image,
        ...(container.name === "main" && { ports }),
      })),
    },
  };
}

function service(): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: HTTP_PORT }] },
  };
}

const RBAC = { apiVersion: "rbac.authorization.k8s.io/v1" };
const API_GROUP = "rbac.authorization.k8s.io";

/**
 * `viewers` may read pods and logs; `devs` may open sessions as well; `impersonators` may be a dev, `constrained-impersonators` by the
 * verbs of KEP-5284.
 */
function readers(): object[] {
  const read = {
    apiGroups: [""],
    resources: ["pods", "pods/log", "services"],
    verbs: ["get", "list", "watch"],
  };
  const stream = {
    apiGroups: [""],
    resources: ["pods/exec", "pods/attach", "pods/portforward"],
    verbs: ["get", "create"],
  };
  const on = (...verbs: string[]): string[] =>
    verbs.flatMap((verb) => ["user-info", "serviceaccount"].map((mode) => `impersonate-on:${mode}:${verb}`));
  const beSome = [
    ...[
      ["users", "dave"],
      ["groups", "devs"],
    ].map(([resource, name]) => ({
      apiGroups: ["authentication.k8s.io"],
      resources: [resource],
      resourceNames: [name],
      verbs: ["impersonate:user-info"],
    })),
    {
      apiGroups: ["authentication.k8s.io"],
      resources: ["serviceaccounts"],
      verbs: ["impersonate:serviceaccount"],
    },
    { apiGroups: [""], resources: ["pods", "pods/exec"], verbs: on("get", "list") },
    { nonResourceURLs: ["*"], verbs: on("get") },
  ];
  const become = { apiGroups: [""], resources: ["groups", "users"], verbs: ["impersonate"] };
  return [
    { ...RBAC, kind: "Role", metadata: { name: "viewers", namespace: "default" }, rules: [read] },
    { ...RBAC, kind: "Role", metadata: { name: "devs", namespace: "default" }, rules: [read, stream] },
    ...["viewers", "devs"].map((name) =>
      roleBinding(name, name, { apiGroup: API_GROUP, kind: "Group", name }),
    ),
    { ...RBAC, kind: "ClusterRole", metadata: { name: "impersonators" }, rules: [become] },
    clusterBinding("impersonators", "impersonators", { kind: "Group", name: "impersonators" }),
    { ...RBAC, kind: "ClusterRole", metadata: { name: "constrained-impersonators" }, rules: beSome },
    clusterBinding("constrained-impersonators", "constrained-impersonators", {
      kind: "Group",
      name: "constrained-impersonators",
    }),
  ];
}

/** What the API server needs of its kubelets, as kubeadm binds it. */
function rolesOfKubelets(): object[] {
  return [
    clusterBinding("kubelet-api", "system:kubelet-api-admin", {
      kind: "Group",
      name: "kubeadm:apiserver-kubelet",
    }),
  ];
}

/** In the namespace `default`. */
export function roleBinding(name: string, role: string, subject: object): object {
  return {
    ...RBAC,
    kind: "RoleBinding",
    metadata: { name, namespace: "default" },
    roleRef: { apiGroup: API_GROUP, kind: "Role", name: role },
    subjects: [subject],
  };
}

export function clusterBinding(name: string, role: string, subject: { kind: string; name: string }): object {
  return {
    ...RBAC,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: API_GROUP, kind: "ClusterRole", name: role },
    subjects: [{ apiGroup: API_GROUP, ...subject }],
  };
}
