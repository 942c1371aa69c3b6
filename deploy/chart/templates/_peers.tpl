{{- /* What lets the gateway's replicas know each other (listeners.peers), where there are several. */ -}}

{{- define "sluice.peers.areOn" -}}
{{- if and .values.peers.enabled (or .values.autoscaling.enabled (gt (int .values.replicaCount) 1)) }}true{{ end -}}
{{- end }}

{{- define "sluice.peers.port" -}}
{{- if include "sluice.peers.areOn" . }}{{ include "sluice.listenerPort" (merge (dict "listener" "peers") .) }}{{ end -}}
{{- end }}

{{- define "sluice.peers.listener" -}}
address: "::"
port: 8444
tls:
  certFile: /etc/sluice-peers/tls.crt
  keyFile: /etc/sluice-peers/tls.key
  certificateAuthorityFile: /etc/sluice-peers/ca.crt
sessionKeyFile: /etc/sluice-peers/session.key
service: { name: {{ include "sluice.componentName" . }}-peers, namespace: {{ .root.Release.Namespace }} }
{{- end }}

{{- define "sluice.peers.volume" -}}
{{- $name := printf "%s-peers" (include "sluice.componentName" .) -}}
name: peers
projected:
  sources:
    - secret: { name: {{ default $name .values.peers.existingSecret }} }
    {{- if and .values.peers.certManager.enabled (not .values.peers.existingSecret) }}
    - secret: { name: {{ $name }}-tls }
    {{- end }}
{{- end }}

{{- define "sluice.peers" -}}
{{- $name := printf "%s-peers" (include "sluice.componentName" .) -}}
{{- $namespace := .root.Release.Namespace -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
    sluice.dev/listener: peers
spec:
  type: ClusterIP
  clusterIP: None
  # A pod that drains still owns its sessions.
  publishNotReadyAddresses: true
  selector: {{- include "sluice.selectorLabels" . | nindent 4 }}
  ports:
    - { name: peer, port: 8444, targetPort: peer, appProtocol: https }
{{- if .values.rbac.create }}
---
# Where the replicas are.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
rules:
  - { apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }} }
subjects: [{ kind: ServiceAccount, name: {{ include "sluice.serviceAccountName" . }}, namespace: {{ $namespace }} }]
{{- end }}
{{- if not .values.peers.existingSecret }}
---
{{- $known := (lookup "v1" "Secret" $namespace $name) | default dict }}
{{- $known = $known.data | default dict }}
apiVersion: v1
kind: Secret
type: Opaque
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
data:
  session.key: {{ default (randAlphaNum 44 | b64enc) (index $known "session.key") }}
  {{- if not .values.peers.certManager.enabled }}
  {{- if index $known "tls.key" }}
  {{- range list "ca.crt" "tls.crt" "tls.key" }}
  {{ . }}: {{ index $known . }}
  {{- end }}
  {{- else }}
  {{- $ca := genCA (printf "%s CA" $name) 3650 }}
  {{- $certificate := genSignedCert "sluice-peer" (list) (list "sluice-peer") 3650 $ca }}
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $certificate.Cert | b64enc }}
  tls.key: {{ $certificate.Key | b64enc }}
  {{- end }}
  {{- else }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  secretName: {{ $name }}-tls
  {{- $_ := required (printf "%s.peers.certManager.issuerRef.name is required" .name) .values.peers.certManager.issuerRef.name }}
  issuerRef: {{- toYaml .values.peers.certManager.issuerRef | nindent 4 }}
  usages: [server auth, client auth]
  dnsNames: [sluice-peer]
  {{- end }}
{{- end }}
{{- end }}
