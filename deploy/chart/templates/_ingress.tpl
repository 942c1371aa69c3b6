{{- define "sluice.ingress.base" -}}
listeners:
  admin: { address: "::", port: 8081 }
  ingress:
    address: "::"
    httpPort: 8080
    httpsPort: 8443
    {{- if .values.defaultCertificate }}
    defaultCertificate: { certFile: /etc/sluice-tls/tls.crt, keyFile: /etc/sluice-tls/tls.key }
    {{- end }}
    leaderElection: { resourceName: {{ include "sluice.componentName" . }}, resourceNamespace: {{ .root.Release.Namespace }} }
workers: auto
cluster: { inCluster: true }
{{- include "sluice.prober.base" . }}
timeouts: { shutdownGracePeriod: {{ .values.shutdownGracePeriodSeconds }}s }
{{- end }}

{{- define "sluice.ingress.rbac" -}}
{{- $name := include "sluice.componentName" . -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $labels := include "sluice.labels" . -}}
{{- $account := include "sluice.serviceAccountName" . -}}
{{- $secrets := "  - { apiGroups: [\"\"], resources: [secrets], verbs: [list, watch] }" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $namespace }}-{{ $name }}
  labels: {{- $labels | nindent 4 }}
rules:
  # Which namespaces may use the routes of which class and host.
  - { apiGroups: [""], resources: [namespaces], verbs: [get, list, watch] }
  {{- if include "sluice.prober.areNodesGiven" . }}
  # podProbes.
  - { apiGroups: [""], resources: [pods], verbs: [get, list, watch] }
  {{- end }}
  # Routes, and where they lead.
  - { apiGroups: [""], resources: [services], verbs: [list, watch] }
  - { apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch] }
  - { apiGroups: [networking.k8s.io], resources: [ingresses, ingressclasses], verbs: [list, watch] }
  # What is reported of Ingresses.
  - { apiGroups: [networking.k8s.io], resources: [ingresses/status], verbs: [patch] }
  - { apiGroups: [""], resources: [events], verbs: [create, get, patch] }
  {{- if has "*" .values.rbac.secretNamespaces }}
  # ingress.rbac.secretNamespaces: ["*"].
{{ $secrets }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $namespace }}-{{ $name }}
  labels: {{- $labels | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $namespace }}-{{ $name }} }
subjects: [{ kind: ServiceAccount, name: {{ $account }}, namespace: {{ $namespace }} }]
{{- if dig "listeners" "ingress" "leaderElection" "leaderElect" true .values.config }}
---
# Which replica writes statuses and Events.
{{ include "sluice.lease" (merge (dict "election" (dig "listeners" "ingress" "leaderElection" dict .values.config) "leaseName" $name) .) }}
{{- end }}
{{- range without .values.rbac.secretNamespaces "*" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}-secrets
  namespace: {{ . }}
  labels: {{- $labels | nindent 4 }}
rules:
{{ $secrets }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}-secrets
  namespace: {{ . }}
  labels: {{- $labels | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}-secrets }
subjects: [{ kind: ServiceAccount, name: {{ $account }}, namespace: {{ $namespace }} }]
{{- end }}
{{- range $secretNamespace, $names := .values.rbac.secrets }}
---
# A watch of one Secret by its name is what the role permits; so are its lists.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}-named-secrets
  namespace: {{ $secretNamespace }}
  labels: {{- $labels | nindent 4 }}
rules:
  - { apiGroups: [""], resources: [secrets], resourceNames: {{ toJson $names }}, verbs: [list, watch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}-named-secrets
  namespace: {{ $secretNamespace }}
  labels: {{- $labels | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}-named-secrets }
subjects: [{ kind: ServiceAccount, name: {{ $account }}, namespace: {{ $namespace }} }]
{{- end }}
{{- end }}
