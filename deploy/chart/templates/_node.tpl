{{- /* The configuration of a node's own Sluice. Addresses and names of the node come as flags, from the downward API. */ -}}

{{- define "sluice.node.base" -}}
listeners:
  kubelet:
    port: {{ .values.port }}
    {{- if .values.tls.existingSecret }}
    tls: { certFile: /etc/sluice-tls/tls.crt, keyFile: /etc/sluice-tls/tls.key }
    {{- else }}
    tls: { certFile: {{ .values.tls.hostPath }}/{{ .values.tls.certFile }}, keyFile: {{ .values.tls.hostPath }}/{{ .values.tls.keyFile }} }
    {{- end }}
    runtime: { endpoint: "unix:///run/cri.sock" }
    upstream:
      url: {{ .values.kubelet.url }}
      certificateAuthorityFile: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
      tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
  # Only the node itself reaches it.
  admin: { port: {{ .values.adminPort }} }
authentication:
  # API servers come with a certificate of the cluster's authority for clients, metrics-server and Prometheus with a token. A ServiceAccount's ca.crt
  # says whom to trust as an API server: its bundle may have authorities whose clients are strangers.
  clientCAFile: /etc/sluice-clients/client-ca-file
  refuseSystemMasters: true
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
  # What the kubelet behind is asked for others. No nodes/proxy: that is exec on every pod. No nodes/log without node.rbac.logs: those are all files of
  # /var/log. One account serves all pods of a DaemonSet, and Kubernetes keeps only nodes' own identities to their node: each may ask every node
  # that node.rbac.nodeNames lists, all of them without.
  - apiGroups: [""]
    resources: [nodes/metrics, nodes/stats, nodes/configz, nodes/healthz, nodes/pods{{ if .values.rbac.logs }}, nodes/log{{ end }}]
    {{- with .values.rbac.nodeNames }}
    resourceNames: {{ toJson . }}
    {{- end }}
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $name }} }
subjects: [{ kind: ServiceAccount, name: {{ include "sluice.serviceAccountName" . }}, namespace: {{ .root.Release.Namespace }} }]
{{- end }}

{{- /* The cluster's authority for clients, from where the API server publishes it. */ -}}
{{- define "sluice.node.clientCA" -}}
{{- $published := (lookup "v1" "ConfigMap" "kube-system" "extension-apiserver-authentication") | default dict -}}
{{- $text := default (dig "data" "client-ca-file" "" $published) .values.clientCA.certificates -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "sluice.componentName" . }}-client-ca
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
data:
  client-ca-file: |
    {{- required "node.clientCA.certificates or node.clientCA.existingConfigMap is required: kube-system has no ConfigMap extension-apiserver-authentication with client-ca-file, or the chart is rendered without a cluster" $text | nindent 4 }}
{{- end }}
