{{- /* What the gateway needs besides the objects of every component: its configuration and its rights. */ -}}

{{- define "sluice.gateway.base" -}}
listeners:
  apiServer:
    address: "::"
    port: 6443
    tls: { certFile: /etc/sluice-tls/tls.crt, keyFile: /etc/sluice-tls/tls.key }
  admin: { address: "::", port: 8081 }
  {{- if include "sluice.peers.areOn" . }}
  peers: {{- include "sluice.peers.listener" . | nindent 4 }}
  {{- end }}
workers: auto
cluster:
  inCluster: true
  {{- if not .values.kubelet.existingSecret }}
  # Without credentials for kubelets the API server carries all sessions, as it admits and audits them.
  admission: always
  {{- end }}
  {{- if eq .values.rbac.impersonate "none" }}
  forwardAs: caller
  {{- else }}
  forwardAs: impersonate
  impersonation: {{ .values.rbac.impersonate }}
  {{- end }}
authentication:
  tokenReview: { inCluster: true }
  {{- if .values.apiService.enabled }}
  requestHeader: {{- (include "sluice.frontProxy" . | fromYaml).headers | toYaml | nindent 4 }}
  {{- end }}
authorization:
  mode: [Webhook]
  webhook: { inCluster: true }
kubelet:
  # Pods resolve no host names of nodes.
  preferredAddressTypes: [InternalIP, ExternalIP, Hostname]
{{- if .values.kubelet.existingSecret }}
  clientCertificateFile: /etc/sluice-kubelet/tls.crt
  clientKeyFile: /etc/sluice-kubelet/tls.key
  {{- if .values.kubelet.insecureSkipTLSVerify }}
  insecureSkipTLSVerify: true
  {{- else }}
  certificateAuthorityFile: /etc/sluice-kubelet/ca.crt
  {{- end }}
{{- end }}
{{- include "sluice.quotaStore.base" . }}
{{- include "sluice.prober.base" . }}
timeouts: { shutdownGracePeriod: {{ .values.shutdownGracePeriodSeconds }}s }
{{- end }}

{{- define "sluice.quotaStore.base" -}}
{{- with .values.quotaStore }}
{{- if or .existingSecret .tls.existingSecret }}
{{- if not (dig "quotaStore" "url" "" $.values.config) }}{{ fail "gateway.quotaStore needs gateway.config.quotaStore.url" }}{{ end }}
quotaStore:
  {{- if .existingSecret }}
  passwordFile: /etc/sluice-quotas/password
  {{- end }}
  {{- if .tls.existingSecret }}
  certificateAuthorityFile: /etc/sluice-quotas/ca.crt
  {{- if .tls.clientCertificate }}
  clientCertificateFile: /etc/sluice-quotas/tls.crt
  clientKeyFile: /etc/sluice-quotas/tls.key
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Empty where the store asks for nothing. */ -}}
{{- define "sluice.quotaStore.volume" -}}
{{- with .values.quotaStore }}
{{- if or .existingSecret .tls.existingSecret -}}
name: quotas
projected:
  sources:
    {{- with .existingSecret }}
    - secret: { name: {{ . }}, items: [{ key: {{ $.values.quotaStore.passwordKey }}, path: password }] }
    {{- end }}
    {{- with .tls.existingSecret }}
    - secret:
        name: {{ . }}
        items: {{- range concat (list "ca.crt") (ternary (list "tls.crt" "tls.key") list $.values.quotaStore.tls.clientCertificate) }}
          - { key: {{ . }}, path: {{ . }} }
        {{- end }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The rules of a NetworkPolicy for the gateway's own connections. */ -}}
{{- define "sluice.gateway.egress" -}}
{{- $egress := .root.Values.networkPolicy.egress -}}
- ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
# A Service's port, or that of what is behind it: network plugins differ.
- ports:
    {{- range concat (list 443 6443) (ternary (list 10250) list (ne .values.kubelet.existingSecret "")) }}
    - { port: {{ . }} }
    {{- end }}
  {{- with $egress.networks }}
  to: {{- range . }}
    - { ipBlock: { cidr: {{ . | quote }} } }
  {{- end }}
  {{- end }}
{{- if include "sluice.peers.areOn" . }}
- to:
    - podSelector:
        matchLabels: {{- include "sluice.selectorLabels" . | nindent 10 }}
  ports: [{ port: {{ include "sluice.peers.port" . }} }]
{{- end }}
{{- with dig "quotaStore" "url" "" .values.config }}
- ports: [{ port: {{ regexFind ":[0-9]+$" (urlParse .).host | default ":6379" | trimPrefix ":" }} }]
  {{- with $egress.quotaStore }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- if include "sluice.prober.areNodesGiven" . }}
- to: [{ namespaceSelector: {} }]
{{- end }}
{{- with $egress.rules }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.gateway.rbac" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .root.Release.Namespace }}-{{ include "sluice.componentName" . }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
rules:
  # Where a session goes.
  - { apiGroups: [""], resources: [pods, nodes, namespaces], verbs: [get, list, watch] }
  # The API servers' own endpoints, which no node may have.
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    resourceNames: [kubernetes]
    verbs: [list, watch]
  {{- $admission := dig "cluster" "admission" (ternary "always" "apiServer" (empty .values.kubelet.existingSecret)) .values.config }}
  {{- if eq $admission "apiServer" }}
  # Which sessions admission of the cluster judges (cluster.admission: apiServer).
  - apiGroups: [admissionregistration.k8s.io]
    resources:
      {{- range list "validating" "mutating" }}
      - {{ . }}webhookconfigurations
      - {{ . }}admissionpolicies
      - {{ . }}admissionpolicybindings
      {{- end }}
    verbs: [list, watch]
  {{- end }}
  # authentication.tokenReview and authorization.webhook.
  - { apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create] }
  - { apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create] }
  {{- $impersonation := include "sluice.impersonation" . }}
  {{- if eq $impersonation "constrained" }}
  # cluster.impersonation: constrained. Any user but nodes and members of system:masters; service accounts by name alone.
  - apiGroups: [authentication.k8s.io]
    resources:
      - users
      - groups
      - uids
      {{- include "sluice.userExtras" . | nindent 6 }}
    verbs: ["impersonate:user-info"]
  - { apiGroups: [authentication.k8s.io], resources: [serviceaccounts], verbs: ["impersonate:serviceaccount"] }
  # What callers may do through the gateway. Another ClusterRole may narrow it: gateway.rbac.create=false.
  - apiGroups: ["*"]
    resources: ["*"]
    verbs:
      {{- range $verb := list "get" "list" "watch" "create" "update" "patch" "delete" "deletecollection" }}
      - impersonate-on:user-info:{{ $verb }}
      - impersonate-on:serviceaccount:{{ $verb }}
      {{- end }}
  - nonResourceURLs: ["*"]
    verbs:
      {{- range $method := list "get" "head" "options" "post" "put" "patch" "delete" }}
      - impersonate-on:user-info:{{ $method }}
      - impersonate-on:serviceaccount:{{ $method }}
      {{- end }}
  {{- else if eq $impersonation "legacy" }}
  # cluster.forwardAs: impersonate.
  - { apiGroups: [""], resources: [users, groups, serviceaccounts], verbs: [impersonate] }
  - { apiGroups: [authentication.k8s.io], resources: [uids], verbs: [impersonate] }
  - apiGroups: [authentication.k8s.io]
    resources:
      {{- include "sluice.userExtras" . | nindent 6 }}
    verbs: [impersonate]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .root.Release.Namespace }}-{{ include "sluice.componentName" . }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .root.Release.Namespace }}-{{ include "sluice.componentName" . }}
subjects:
  - kind: ServiceAccount
    name: {{ include "sluice.serviceAccountName" . }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- /* constrained, legacy or none. An API server before Kubernetes 1.36 does not know the verbs of the first, and would refuse everybody. */ -}}
{{- define "sluice.impersonation" -}}
{{- $how := .values.rbac.impersonate -}}
{{- if ne $how "none" }}{{ $how = dig "cluster" "impersonation" $how .values.config }}{{ end -}}
{{- if and (eq $how "constrained") (semverCompare "<1.36-0" .root.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "gateway.rbac.impersonate=constrained needs Kubernetes 1.36 and this is %s: set it to legacy, which may impersonate everybody, or to none, which forwards the callers' own tokens" .root.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{ $how }}
{{- end }}

{{- define "sluice.userExtras" -}}
# The extras that tokens of ServiceAccounts carry: no wildcard of a part of a name exists.
{{- range list "credential-id" "pod-name" "pod-uid" "node-name" "node-uid" }}
- userextras/authentication.kubernetes.io/{{ . }}
{{- end }}
# cluster.nameRequester.
- userextras/sluice.dev/requested-by
{{- end }}

{{- /* Bound to nobody: a release's users differ. */ -}}
{{- define "sluice.gateway.sessionRoles" -}}
{{- $roles := dict "viewer" (list "list" "watch") "operator" (list "get" "list" "watch") "moderator" (list "get" "list" "watch" "delete") }}
{{- $name := printf "%s-%s" .root.Release.Namespace (include "sluice.componentName" .) }}
{{- $labels := include "sluice.labels" . }}
{{- range $role, $verbs := $roles }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}-session-{{ $role }}
  labels: {{- $labels | nindent 4 }}
rules:
  - { apiGroups: [sluice.dev], resources: [streamingsessions], verbs: {{ toJson $verbs }} }
  {{- if ne $role "viewer" }}
  - { apiGroups: [sluice.dev], resources: [streamingsessions/output], verbs: [get] }
  {{- end }}
  {{- if eq $role "operator" }}
  # Beside the right to open such a session, as create of pods/exec.
  - { apiGroups: [sluice.dev], resources: [streamingsessions/attach], verbs: [get, create] }
  {{- end }}
{{- end }}
{{- end }}
