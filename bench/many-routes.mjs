import { mkdtempSync, writeFileSync } from "node:fs";
import path from "node:path";
import { serviceTo, startSluice } from "./front-doors.mjs";
import { freePorts } from "./processes.mjs";

/** How many Ingresses there are; the host of each is `host-INDEX.example.com`. */
const INGRESSES = 10_000;

const networking = { apiVersion: "networking.k8s.io/v1" };

/**
 * Starts a gateway with 10,000 Ingresses in a folder of manifests. `change` writes the file of one of
 * them, and `reloads` resolves with how often routes were compiled.
 */
export async function startManyRoutes({ folder: parent, port, upstreamPort }) {
  const folder = mkdtempSync(path.join(parent, "many-routes-"));
  const manifests = mkdtempSync(path.join(folder, "manifests-"));
  const write = (name, ...items) =>
    writeFileSync(path.join(manifests, name), JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const ingressClass = {
    ...networking,
    kind: "IngressClass",
    metadata: { name: "sluice" },
    spec: { controller: "sluice.dev/ingress-controller" },
  };
  const others = Array.from({ length: INGRESSES - 1 }, (_, index) => ingress(index + 1, "/"));
  write("cluster.json", ingressClass, ...serviceTo("app", upstreamPort), ...others);
  let changes = 0;
  const change = () => write("one.json", ingress(0, `/v${++changes}`));
  change();
  const [adminPort] = await freePorts(1);
  const child = startSluice({ folder, manifests: [manifests], ingress: { httpPort: port }, adminPort });
  const reloads = async () => {
    const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
    return Number(/^sluice_ingress_reloads_total (\d+)/m.exec(text)?.[1]);
  };
  return { child, change, reloads };
}

function ingress(index, pathOf) {
  const backend = { service: { name: "app", port: { number: 80 } } };
  const paths = [{ path: pathOf, pathType: "Prefix", backend }];
  return {
    ...networking,
    kind: "Ingress",
    metadata: { name: `ingress-${index}`, namespace: "default" },
    spec: { ingressClassName: "sluice", rules: [{ host: `host-${index}.example.com`, http: { paths } }] },
  };
}
