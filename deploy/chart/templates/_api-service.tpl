{{- /* The cluster's API server in front of the gateway, for the API group of sessions (gateway.apiService). */ -}}

{{- /* What the API server publishes about its front proxy, merged with the values: clientCA, allowedNames, and the names of headers, as YAML. */ -}}
{{- define "sluice.frontProxy" -}}
{{- $given := .values.apiService.frontProxy -}}
{{- $published := dig "data" dict ((lookup "v1" "ConfigMap" "kube-system" "extension-apiserver-authentication") | default dict) -}}
{{- $ca := default (get $published "requestheader-client-ca-file") $given.clientCA -}}
{{- $_ := required "gateway.apiService.frontProxy.clientCA is required: kube-system has no ConfigMap extension-apiserver-authentication with requestheader-client-ca-file, or the chart is rendered without a cluster" $ca -}}
{{- $names := default (default "[]" (get $published "requestheader-allowed-names") | fromJsonArray) $given.allowedNames -}}
{{- if and (not $names) (or $given.clientCA (eq (trim $ca) (trim (get $published "client-ca-file")))) -}}
{{- fail "gateway.apiService.frontProxy.allowedNames is required: anybody with a certificate of frontProxy.clientCA could speak for any user" -}}
{{- end -}}
clientCA: {{ $ca | quote }}
headers:
  clientCAFile: /etc/sluice-proxies/ca.crt
  allowedNames: {{ toJson $names }}
  {{- range $field, $key := dict "usernameHeaders" "username-headers" "uidHeaders" "uid-headers" "groupHeaders" "group-headers" "extraHeaderPrefixes" "extra-headers-prefix" }}
  {{- with get $published (printf "requestheader-%s" $key) }}
  {{- with fromJsonArray . }}
  {{ $field }}: {{ toJson . }}
  {{- end }}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "sluice.apiService" -}}
{{- $fullname := include "sluice.componentName" . -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $values := .values.apiService -}}
{{- $secret := (lookup "v1" "Secret" $namespace (default (printf "%s-tls" $fullname) .values.tls.existingSecret)) | default dict -}}
{{- $injects := and .values.tls.certManager.enabled (not .values.tls.existingSecret) (not $values.caBundle) -}}
{{- /* .servingCA: of a certificate that this rendering has made. */ -}}
{{- $ca := default (default (dig "data" "ca.crt" "" $secret) .servingCA) (b64enc $values.caBundle) -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $fullname }}-front-proxy
  namespace: {{ $namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
data:
  ca.crt: |
    {{- (include "sluice.frontProxy" . | fromYaml).clientCA | nindent 4 }}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1alpha1.sluice.dev
  labels: {{- include "sluice.labels" . | nindent 4 }}
  {{- if and $injects (not $values.insecureSkipTLSVerify) }}
  annotations: { cert-manager.io/inject-ca-from: {{ $namespace }}/{{ $fullname }} }
  {{- end }}
spec:
  group: sluice.dev
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 100
  service: { name: {{ $fullname }}, namespace: {{ $namespace }}, port: {{ .values.service.port }} }
  {{- if $values.insecureSkipTLSVerify }}
  insecureSkipTLSVerify: true
  {{- else if not $injects }}
  caBundle: {{ required "gateway.apiService.caBundle is required: the Secret of gateway.tls has no ca.crt, or the chart is rendered without a cluster" $ca }}
  {{- end }}
{{- end }}
