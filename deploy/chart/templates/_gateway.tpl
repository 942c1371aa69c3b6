{{- /* What the gateway needs besides the objects of every component: its configuration, its rights, its certificate. */ -}}

{{- define "sluice.gateway.base" -}}
listeners:
  apiServer:
    address: "::"
    port: 6443
    tls: { certFile: /etc/sluice-tls/tls.crt, keyFile: /etc/sluice-tls/tls.key }
  admin: { address: "::", port: 8081 }
cluster:
  inCluster: true
  forwardAs: {{ ternary "impersonate" "caller" .values.rbac.impersonate }}
authentication:
  tokenReview: {{- include "sluice.ownApiServer" . | nindent 4 }}
authorization:
  mode: [Webhook]
  webhook: {{- include "sluice.ownApiServer" . | nindent 4 }}
{{- if .values.kubelet.existingSecret }}
kubelet:
  clientCertificateFile: /etc/sluice-kubelet/tls.crt
  clientKeyFile: /etc/sluice-kubelet/tls.key
  {{- if .values.kubelet.insecureSkipTLSVerify }}
  insecureSkipTLSVerify: true
  {{- else }}
  certificateAuthorityFile: /etc/sluice-kubelet/ca.crt
  {{- end }}
{{- end }}
timeouts: { shutdownGracePeriod: {{ .values.shutdownGracePeriodSeconds }}s }
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
  {{- include "sluice.admissionRule" . | nindent 2 }}
  # authentication.tokenReview and authorization.webhook.
  - { apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create] }
  - { apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create] }
  {{- if .values.rbac.impersonate }}
  # cluster.forwardAs: impersonate.
  - { apiGroups: [""], resources: [users, groups, serviceaccounts], verbs: [impersonate] }
  - { apiGroups: [authentication.k8s.io], resources: [uids], verbs: [impersonate] }
  # The extras that tokens of ServiceAccounts carry: no wildcard of a part of a name exists.
  - apiGroups: [authentication.k8s.io]
    resources:
      {{- range list "credential-id" "pod-name" "pod-uid" "node-name" "node-uid" }}
      - userextras/authentication.kubernetes.io/{{ . }}
      {{- end }}
      # cluster.nameRequester.
      - userextras/sluice.dev/requested-by
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

{{- define "sluice.gateway.certificate" -}}
{{- $fullname := include "sluice.componentName" . -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $names := concat (list (printf "%s.%s.svc" $fullname $namespace) (printf "%s.%s" $fullname $namespace) $fullname "localhost") .values.tls.names -}}
{{- if .values.tls.certManager.enabled -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $fullname }}
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  secretName: {{ $fullname }}-tls
  {{- $_ := required "gateway.tls.certManager.issuerRef.name is required" .values.tls.certManager.issuerRef.name }}
  issuerRef: {{- toYaml .values.tls.certManager.issuerRef | nindent 4 }}
  usages: [server auth]
  {{- $addresses := list }}
  {{- $hosts := list }}
  {{- range $names }}
  {{- if regexMatch "^[0-9.]+$|:" . }}{{ $addresses = append $addresses . }}{{ else }}{{ $hosts = append $hosts . }}{{ end }}
  {{- end }}
  dnsNames: {{- toYaml $hosts | nindent 4 }}
  {{- with $addresses }}
  ipAddresses: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- else if .values.tls.generate -}}
{{- $known := (lookup "v1" "Secret" $namespace (printf "%s-tls" $fullname)) -}}
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata:
  name: {{ $fullname }}-tls
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
data:
{{- if $known }}
  {{- range $key, $value := $known.data }}
  {{ $key }}: {{ $value }}
  {{- end }}
{{- else }}
  {{- $ca := genCA (printf "%s CA" $fullname) 3650 }}
  {{- $addresses := list "127.0.0.1" }}
  {{- $hosts := list }}
  {{- range $names }}
  {{- if regexMatch "^[0-9.]+$|:" . }}{{ $addresses = append $addresses . }}{{ else }}{{ $hosts = append $hosts . }}{{ end }}
  {{- end }}
  {{- $certificate := genSignedCert $fullname $addresses $hosts 3650 $ca }}
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $certificate.Cert | b64enc }}
  tls.key: {{ $certificate.Key | b64enc }}
{{- end }}
{{- else -}}
{{- fail "gateway.tls needs existingSecret, certManager.enabled or generate: kubectl does not send tokens without TLS" -}}
{{- end }}
{{- end }}

{{- define "sluice.admissionRule" -}}
# Which sessions admission of the cluster judges (cluster.admission).
- apiGroups: [admissionregistration.k8s.io]
  resources:
    {{- range list "validating" "mutating" }}
    - {{ . }}webhookconfigurations
    - {{ . }}admissionpolicies
    - {{ . }}admissionpolicybindings
    {{- end }}
  verbs: [list, watch]
{{- end }}
