{{- /* The configuration of a node's own Sluice. Addresses and names of the node come as flags, from the downward API. */ -}}

{{- define "sluice.node.base" -}}
listeners:
  kubelet:
    port: {{ .values.port }}
    tls: { certFile: /etc/sluice-tls/tls.crt, keyFile: /etc/sluice-tls/tls.key }
    runtime: { endpoint: "unix:///run/cri.sock" }
    upstream:
      url: {{ .values.kubelet.url }}
      certificateAuthorityFile: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
      tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
  # Only the node itself reaches it.
  admin: { port: {{ .values.adminPort }} }
authentication:
  # API servers come with a certificate of the cluster's authority, metrics-server and Prometheus with a token.
  clientCAFile: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
  tokenReview: { inCluster: true }
authorization:
  mode: [Webhook]
  webhook: { inCluster: true }
timeouts: { shutdownGracePeriod: {{ .values.shutdownGracePeriodSeconds }}s }
{{- end }}

{{- define "sluice.node.rbac" -}}
{{- $name := printf "%s-%s" .root.Release.Namespace (include "sluice.componentName" .) -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
rules:
  # Who calls the node's port, and what they may do there.
  - { apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create] }
  - { apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create] }
  # What the kubelet behind is asked for others. No nodes/proxy: that is exec on every pod.
  - { apiGroups: [""], resources: [nodes/metrics, nodes/stats, nodes/log, nodes/configz, nodes/healthz, nodes/pods], verbs: [get] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $name }} }
subjects: [{ kind: ServiceAccount, name: {{ include "sluice.serviceAccountName" . }}, namespace: {{ .root.Release.Namespace }} }]
{{- end }}
