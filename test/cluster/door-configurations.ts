import path from "node:path";
import type { DoorName } from "./doors.ts";
import { ADDRESSES, NODE_NAME } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

const KIND = { apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration" };

/** A gateway in front of the cluster, as docs/live-cluster.md describes it. */
export function gatewayConfiguration(cluster: ClusterAddresses, door: DoorName): object {
  const file = (name: string): string => path.join(cluster.credentials, name);
  const isCaller = door === "caller";
  return {
    ...KIND,
    listeners: {
      apiServer: {
        address: ADDRESSES.controlPlane,
        port: 0,
        tls: { certFile: file("sluice-serving.crt"), keyFile: file("sluice-serving.key") },
      },
      admin: { address: ADDRESSES.controlPlane, port: 0 },
    },
    cluster: {
      kubeconfig: path.join(cluster.folder, "sluice.kubeconfig"),
      forwardAs: isCaller ? "caller" : "impersonate",
    },
    authentication: {
      clientCAFile: file("ca.crt"),
      tokenReview: webhook(cluster, "sluice"),
      anonymous: { enabled: true },
    },
    authorization: { mode: ["RBAC"] },
    kubelet: {
      preferredAddressTypes: [door === "both" ? "ExternalIP" : "InternalIP"],
      certificateAuthorityFile: file("ca.crt"),
      clientCertificateFile: file("apiserver-kubelet-client.crt"),
      clientKeyFile: file("apiserver-kubelet-client.key"),
      allowedAddresses: ["127.0.0.0/8"],
      ...(door === "spdy" && { streaming: { mode: "spdy" } }),
    },
    ...(door === "separate" && { sessions: { portForward: { connections: "separate" } } }),
  };
}

/** Sluice in the place of the cluster's kubelet: another address, the kubelet's port, and the kubelet behind for what is not Sluice's. */
export function nodeConfiguration(cluster: ClusterAddresses, address: string = ADDRESSES.sluiceNode): object {
  const file = (name: string): string => path.join(cluster.credentials, name);
  return {
    ...KIND,
    listeners: {
      kubelet: {
        address,
        port: cluster.kubeletPort,
        tls: { certFile: file("kubelet-serving.crt"), keyFile: file("kubelet-serving.key") },
        authentication: { clientCAFile: file("ca.crt"), tokenReview: webhook(cluster, "kubelet") },
        authorization: { mode: ["Webhook"], webhook: webhook(cluster, "kubelet") },
        runtime: { endpoint: `unix://${cluster.runtimeSocket}`, nodeName: NODE_NAME },
        upstream: {
          ...webhook(cluster, "apiserver-kubelet-client"),
          url: `https://${ADDRESSES.kubelet}:${cluster.kubeletPort}`,
        },
      },
      admin: { address: ADDRESSES.controlPlane, port: 0 },
    },
  };
}

function webhook(cluster: ClusterAddresses, user: string): object {
  const file = (name: string): string => path.join(cluster.credentials, name);
  return {
    url: cluster.url,
    certificateAuthorityFile: file("ca.crt"),
    clientCertificateFile: file(`${user}.crt`),
    clientKeyFile: file(`${user}.key`),
  };
}
