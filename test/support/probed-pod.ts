/** The spec of a pod on the node `ours` whose readiness is probed at this port each second. */
export function probedSpec(port: number) {
  return {
    nodeName: "ours",
    containers: [
      {
        name: "main",
        image: "web:1",
        readinessProbe: { httpGet: { port }, periodSeconds: 1, failureThreshold: 1 },
      },
    ],
  };
}

/** Its status once it runs, before it was probed. */
export const UNREADY_STATUS = {
  phase: "Running",
  podIP: "127.0.0.1",
  containerStatuses: [
    {
      name: "main",
      image: "web:1",
      imageID: "sha256:1",
      containerID: "containerd://1",
      ready: false,
      restartCount: 0,
      state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
    },
  ],
};
