{{- /* The serving certificate of a component, unless a Secret is given. */ -}}

{{- define "sluice.certificate" -}}
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
  {{- $_ := required (printf "%s.tls.certManager.issuerRef.name is required" .name) .values.tls.certManager.issuerRef.name }}
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
  {{- $_ := set . "servingCA" (b64enc $ca.Cert) }}
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $certificate.Cert | b64enc }}
  tls.key: {{ $certificate.Key | b64enc }}
{{- end }}
{{- else -}}
{{- fail (printf "%s.tls needs existingSecret, certManager.enabled or generate: tokens are not sent without TLS" .name) -}}
{{- end }}
{{- end }}
