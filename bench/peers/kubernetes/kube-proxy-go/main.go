// kube-proxy-go mounts k8s.io/apiserver's stream handlers the way
// pkg/registry/core/pod/rest/subresources.go mounts them for pods/exec and
// pods/portforward, in front of one upstream (the "kubelet").
//
// Paths: /exec and /portforward, or .../pods/NAME/exec and .../portforward; and
// a kubelet's /exec/NS/POD/CONTAINER and /portForward/NS/POD with its options,
// behind which kubelets from 1.36 on mount the same handlers.
//
//go:debug default=go1.26
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"sluice.dev/bench/peers/kubernetes/internal/selfsigned"

	"k8s.io/apimachinery/pkg/util/proxy"
	translator "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

type responder struct{ w http.ResponseWriter }

func (r responder) Error(err error) { http.Error(r.w, err.Error(), http.StatusInternalServerError) }

func isTrue(v url.Values, k string) bool { s := v.Get(k); return s == "true" || s == "1" }

func main() {
	listen := flag.String("listen", "127.0.0.1:18081", "address")
	upstream := flag.String("upstream", "http://127.0.0.1:18080", "kubelet-like upstream")
	useTLS := flag.Bool("tls", false, "serve TLS with a throw-away certificate")
	passThrough := flag.Bool("pass-through", false, "carry WebSocket as it comes, as before kubelets that declare ExtendWebSocketsToKubelet")
	pprofAddr := flag.String("pprof", "", "pprof address, off when empty")
	flag.Parse()

	up, err := url.Parse(*upstream)
	if err != nil {
		log.Fatal(err)
	}
	// Like the apiserver's kubelet transport: a plain *http.Transport. TLS is not verified here, as
	// by default kubelets' serving certificates are not.
	transport := &http.Transport{
		Proxy:               nil,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
	}

	upgradeAware := func(loc *url.URL, w http.ResponseWriter) *proxy.UpgradeAwareHandler {
		// newThrottledUpgradeAwareProxyHandler(location, transport, false, true, responder);
		// MaxBytesPerSec = 0 is --max-connection-bytes-per-sec's default.
		return proxy.NewUpgradeAwareHandler(loc, transport, false, true, proxy.NewErrorResponder(responder{w}))
	}

	exec := func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		isAsked := func(api, kubelet string) bool { return isTrue(q, api) || isTrue(q, kubelet) }
		opts := translator.Options{Stdin: isAsked("stdin", "input"), Stdout: isAsked("stdout", "output"), Stderr: isAsked("stderr", "error"), Tty: isTrue(q, "tty")}
		params := url.Values{} // pod.streamParams
		if opts.Stdin {
			params.Add("input", "1")
		}
		if opts.Stdout {
			params.Add("output", "1")
		}
		if opts.Stderr {
			params.Add("error", "1")
		}
		if opts.Tty {
			params.Add("tty", "1")
		}
		for _, c := range q["command"] {
			params.Add("command", c)
		}
		loc := &url.URL{Scheme: up.Scheme, Host: up.Host, Path: "/exec/default/pod/c", RawQuery: params.Encode()}
		if *passThrough {
			upgradeAware(loc, w).ServeHTTP(w, req)
			return
		}
		st := translator.NewStreamTranslatorHandler(loc, transport, 0, opts)
		h := translator.NewTranslatingHandler(upgradeAware(loc, w), st, wsstream.IsWebSocketRequestWithStreamCloseProtocol)
		h.ServeHTTP(w, req)
	}
	pf := func(w http.ResponseWriter, req *http.Request) {
		loc := &url.URL{Scheme: up.Scheme, Host: up.Host, Path: "/portforward/default/pod"}
		ua := upgradeAware(loc, w)
		h := translator.NewTranslatingHandler(ua, translator.NewTunnelingHandler(ua), wsstream.IsWebSocketRequestWithTunnelingProtocol)
		h.ServeHTTP(w, req)
	}
	root := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		action := path.Base(req.URL.Path)
		if first := strings.Split(req.URL.Path, "/")[1]; first == "exec" || first == "attach" || first == "portForward" {
			action = strings.ToLower(first)
		}
		switch action {
		case "exec", "attach":
			exec(w, req)
		case "portforward":
			pf(w, req)
		case "healthz":
			fmt.Fprintf(w, "kube-proxy-go pid=%d\n", os.Getpid())
		default:
			http.NotFound(w, req)
		}
	})
	if *pprofAddr != "" {
		go func() { log.Println(http.ListenAndServe(*pprofAddr, nil)) }()
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening %s pid=%d\n", ln.Addr(), os.Getpid())
	srv := &http.Server{Handler: root}
	if *useTLS {
		if srv.TLSConfig, err = selfsigned.Config(); err != nil {
			log.Fatal(err)
		}
		log.Fatal(srv.ServeTLS(ln, "", ""))
	}
	log.Fatal(srv.Serve(ln))
}
