package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

func restConfig() *rest.Config {
	return &rest.Config{Host: *baseURL, BearerToken: *token, TLSClientConfig: rest.TLSClientConfig{Insecure: strings.HasPrefix(*baseURL, "https")}}
}

func execURL(cmd string, stdin bool) *url.URL {
	u, err := url.Parse(*baseURL)
	if err != nil {
		log.Fatal(err)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/exec"
	q := url.Values{"command": {cmd}, "stdout": {"true"}}
	if stdin {
		q.Set("stdin", "true")
	}
	u.RawQuery = q.Encode()
	return u
}

func newExecutor(u *url.URL) (remotecommand.Executor, error) {
	switch *via {
	case "ws":
		return remotecommand.NewWebSocketExecutor(restConfig(), "GET", u.String())
	case "ws4": // the protocol of container runtimes; it cannot end stdin
		return remotecommand.NewWebSocketExecutorForProtocols(restConfig(), "GET", u.String(), "v4.channel.k8s.io")
	case "spdy":
		return remotecommand.NewSPDYExecutor(restConfig(), "POST", u)
	}
	return nil, fmt.Errorf("-via %s has no exec", *via)
}

func runExec(ctx context.Context, cmd string, stdin io.Reader, stdout io.Writer) error {
	e, err := newExecutor(execURL(cmd, stdin != nil))
	if err != nil {
		return err
	}
	return e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout})
}

func isPF() bool { return strings.HasPrefix(*via, "pf-") }

func pfDial() (httpstream.Connection, error) {
	u, err := url.Parse(*baseURL)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/portforward"
	var d httpstream.Dialer
	if *via == "pf-ws" {
		d, err = portforward.NewSPDYOverWebsocketDialerForStreaming(u, restConfig())
	} else {
		var tr http.RoundTripper
		var upg clientspdy.Upgrader
		tr, upg, err = clientspdy.RoundTripperFor(restConfig())
		if err == nil {
			d = clientspdy.NewDialerForStreaming(upg, &http.Client{Transport: tr}, "POST", u)
		}
	}
	if err != nil {
		return nil, err
	}
	c, proto, err := d.Dial("portforward.k8s.io")
	if err != nil {
		return nil, err
	}
	if proto != "portforward.k8s.io" {
		return nil, fmt.Errorf("negotiated %q", proto)
	}
	return c, nil
}

var reqID atomic.Int64

type pfSession struct {
	conn  httpstream.Connection
	own   bool
	data  httpstream.Stream
	error httpstream.Stream
	errc  chan error
}

// like (*portforward.PortForwarder).handleConnection
func pfOpen(conn httpstream.Connection, own bool, port int) (*pfSession, error) {
	id := strconv.FormatInt(reqID.Add(1), 10)
	h := http.Header{}
	h.Set(v1.StreamType, v1.StreamTypeError)
	h.Set(v1.PortHeader, strconv.Itoa(port))
	h.Set(v1.PortForwardRequestIDHeader, id)
	es, err := conn.CreateStream(h)
	if err != nil {
		return nil, err
	}
	es.Close()
	s := &pfSession{conn: conn, own: own, error: es, errc: make(chan error, 1)}
	go func() {
		m, err := io.ReadAll(es)
		if err == nil && len(m) > 0 {
			err = errors.New(string(m))
		}
		s.errc <- err
	}()
	h.Set(v1.StreamType, v1.StreamTypeData)
	s.data, err = conn.CreateStream(h)
	return s, err
}

func (s *pfSession) finish() error {
	_ = s.data.Reset()
	err := <-s.errc
	s.conn.RemoveStreams(s.data, s.error)
	if s.own {
		s.conn.Close()
	}
	return err
}
