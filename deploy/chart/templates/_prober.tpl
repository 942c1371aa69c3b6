{{- /* Where a component probes pods (podProbes.nodeNames): its rights, and the Lease of the replica that does. */ -}}

{{- define "sluice.prober.areNodesGiven" -}}
{{- if dig "podProbes" "nodeNames" list .values.config }}true{{ end -}}
{{- end }}

{{- define "sluice.prober.isElected" -}}
{{- if and (include "sluice.prober.areNodesGiven" .) (dig "podProbes" "leaderElection" "leaderElect" true .values.config) }}true{{ end -}}
{{- end }}

{{- define "sluice.prober.base" -}}
{{- if include "sluice.prober.isElected" . }}
podProbes:
  leaderElection: { resourceName: {{ include "sluice.componentName" . }}-probes, resourceNamespace: {{ .root.Release.Namespace }} }
{{- end }}
{{- end }}

{{- define "sluice.prober.rbac" -}}
{{- $name := printf "%s-probes" (include "sluice.componentName" .) -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $labels := include "sluice.labels" . -}}
{{- $subject := printf "{ kind: ServiceAccount, name: %s, namespace: %s }" (include "sluice.serviceAccountName" .) $namespace -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $namespace }}-{{ $name }}
  labels: {{- $labels | nindent 4 }}
rules:
  # What is reported of probes.
  - { apiGroups: [""], resources: [pods/status], verbs: [patch] }
  - { apiGroups: [""], resources: [events], verbs: [create, get, patch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $namespace }}-{{ $name }}
  labels: {{- $labels | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $namespace }}-{{ $name }} }
subjects: [{{ $subject }}]
{{- if include "sluice.prober.isElected" . }}
---
{{ include "sluice.lease" (merge (dict "election" (dig "podProbes" "leaderElection" dict .values.config) "leaseName" $name) .) }}
{{- end }}
{{- end }}

{{- /* A Lease of the release, which goes with it; what it says is the replicas'. Called with "election", its settings in the configuration, and
"leaseName", which is its name unless these have one. */ -}}
{{- define "sluice.lease" -}}
{{- $lease := default .leaseName .election.resourceName -}}
{{- $namespace := default .root.Release.Namespace .election.resourceNamespace -}}
{{- $labels := include "sluice.labels" . -}}
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: {{ $lease }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .leaseName }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
rules:
  - { apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [{{ $lease }}], verbs: [get, update] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .leaseName }}
  namespace: {{ $namespace }}
  labels: {{- $labels | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .leaseName }} }
subjects: [{ kind: ServiceAccount, name: {{ include "sluice.serviceAccountName" . }}, namespace: {{ .root.Release.Namespace }} }]
{{- end }}
