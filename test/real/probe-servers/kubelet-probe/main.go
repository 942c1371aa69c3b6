// Kubernetes' own probers behind lines of JSON: an oracle for verdicts and texts. One request a line on stdin, one answer a line
// on stdout. What Kubernetes 1.36 does not have yet (KEP-5999's transport, KEP-4939's credentials) is set up as the KEPs say.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/probe"
	grpcprobe "k8s.io/kubernetes/pkg/probe/grpc"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
)

type question struct {
	Id        int
	Kind      string
	Host      string
	Port      int
	Path      string
	Scheme    string
	Protocol  string
	Headers   []v1.HTTPHeader
	Service   string
	Mode      string
	TimeoutMs int
}

type answer struct {
	Id     int     `json:"id"`
	Result string  `json:"result"`
	Output string  `json:"output"`
	Error  string  `json:"error,omitempty"`
	Ms     float64 `json:"ms"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	var writing sync.Mutex
	var running sync.WaitGroup
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		running.Go(func() {
			started := time.Now()
			result, output, err := run(asked)
			said := answer{asked.Id, string(result), output, "", float64(time.Since(started).Microseconds()) / 1000}
			if err != nil {
				said.Error = err.Error()
			}
			writing.Lock()
			defer writing.Unlock()
			_ = out.Encode(said)
		})
	}
	running.Wait()
}

func run(asked question) (probe.Result, string, error) {
	timeout := time.Duration(asked.TimeoutMs) * time.Millisecond
	switch asked.Kind {
	case "tcp":
		return tcpprobe.New().Probe(asked.Host, asked.Port, timeout)
	case "grpc":
		if asked.Mode == "TLS" {
			return probeWithTLS(asked, timeout)
		}
		return grpcprobe.New().Probe(asked.Host, asked.Service, asked.Port, timeout)
	}
	action := &v1.HTTPGetAction{
		Path: asked.Path, Port: intstr.FromInt32(int32(asked.Port)), Host: asked.Host,
		Scheme: v1.URIScheme(asked.Scheme), HTTPHeaders: asked.Headers,
	}
	request, err := httpprobe.NewRequestForHTTPGetAction(action, nil, asked.Host, "probe")
	if err != nil {
		return probe.Unknown, "", err
	}
	if asked.Protocol != "HTTP2" {
		return httpprobe.New(false).Probe(request, timeout)
	}
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, DisableKeepAlives: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return httpprobe.DoHTTPProbe(request, &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: sameHost})
}

// The redirects that the kubelet follows. Its own function for this is not exported.
func sameHost(next *http.Request, via []*http.Request) error {
	if next.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// KEP-4939: as the plaintext prober, with TLS that verifies nothing.
func probeWithTLS(asked question, timeout time.Duration) (probe.Result, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	address := net.JoinHostPort(asked.Host, strconv.Itoa(asked.Port))
	//nolint:staticcheck // the kubelet dials like this
	connection, err := grpc.DialContext(ctx, address, grpc.WithBlock(),
		grpc.WithUserAgent("kube-probe/1.36"),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return probe.Failure, fmt.Sprintf("timeout: failed to connect service %q within %v: %v", address, timeout, err), nil
		}
		return probe.Failure, fmt.Sprintf("error: failed to connect service at %q: %v", address, err), nil
	}
	defer connection.Close()
	reply, err := healthpb.NewHealthClient(connection).Check(ctx, &healthpb.HealthCheckRequest{Service: asked.Service})
	if err != nil {
		said, _ := status.FromError(err)
		switch said.Code() {
		case codes.Unimplemented:
			return probe.Failure, fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", said.Message()), nil
		case codes.DeadlineExceeded:
			return probe.Failure, fmt.Sprintf("timeout: health rpc did not complete within %v", timeout), nil
		}
		return probe.Failure, fmt.Sprintf("error: health rpc probe failed: %+v", err), nil
	}
	if reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return probe.Failure, fmt.Sprintf("service unhealthy (responded with %q)", reply.GetStatus().String()), nil
	}
	return probe.Success, "service healthy", nil
}

