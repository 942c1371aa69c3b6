// kube-upstream is a kubelet/CRI-like SPDY/3.1 streaming server. The protocol
// side is Kubernetes' own k8s.io/cri-streaming (ServeExec, ServePortForward,
// which use k8s.io/streaming httpstream/spdy's ResponseUpgrader); the
// "container" is in-process.
//
//	/exec[/...]?command=echo|sink[=N]|source=N[:CHUNK]|exit=K   (stdin/stdout/stderr/tty)
//	/portforward[/...]   data stream's port picks the peer:
//	    7 echo; 9 sink (answers the byte count after EOF);
//	    20000+M source of M MiB, then EOF; 10000+M the same in writes of 64 bytes
//
//go:debug default=go1.26
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strconv"
	"strings"
	"time"

	"sluice.dev/bench/peers/kubernetes/internal/selfsigned"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const defaultChunk = 32 * 1024

func parseSize(s string) (int64, error) {
	mul := int64(1)
	switch {
	case strings.HasSuffix(s, "Ki"):
		mul, s = 1<<10, s[:len(s)-2]
	case strings.HasSuffix(s, "Mi"):
		mul, s = 1<<20, s[:len(s)-2]
	case strings.HasSuffix(s, "Gi"):
		mul, s = 1<<30, s[:len(s)-2]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * mul, err
}

func source(w io.Writer, n int64, chunk int) error {
	buf := make([]byte, chunk)
	for i := range buf {
		buf[i] = byte('a' + i%26)
	}
	for n > 0 {
		b := buf
		if int64(len(b)) > n {
			b = b[:n]
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		n -= int64(len(b))
	}
	return nil
}

func sink(r io.Reader) (int64, error) {
	buf := make([]byte, defaultChunk)
	var n int64
	for {
		m, err := r.Read(buf)
		n += int64(m)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func echo(w io.Writer, r io.Reader) error {
	buf := make([]byte, defaultChunk)
	for {
		m, err := r.Read(buf)
		if m > 0 {
			if _, werr := w.Write(buf[:m]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

type executor struct{}

func (executor) ExecInContainer(ctx context.Context, name, uid, container string, cmd []string, in io.Reader, out, errw io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, timeout time.Duration) error {
	if resize != nil {
		go func() {
			for range resize {
			}
		}()
	}
	if len(cmd) == 0 {
		return errors.New("no command")
	}
	op, arg, _ := strings.Cut(cmd[0], "=")
	switch op {
	case "echo":
		return echo(out, in)
	case "sink":
		if arg != "" { // stdin of WebSocket v4 has no end
			size, err := parseSize(arg)
			if err != nil {
				return err
			}
			in = io.LimitReader(in, size)
		}
		n, err := sink(in)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%d\n", n)
		return err
	case "source":
		size, chunkS, hasChunk := strings.Cut(arg, ":")
		n, err := parseSize(size)
		if err != nil {
			return err
		}
		chunk := int64(defaultChunk)
		if hasChunk {
			if chunk, err = parseSize(chunkS); err != nil {
				return err
			}
		}
		return source(out, n, int(chunk))
	case "exit":
		k, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		if k == 0 {
			return nil
		}
		return utilexec.CodeExitError{Err: fmt.Errorf("exit %d", k), Code: k}
	}
	return fmt.Errorf("unknown command %q", cmd[0])
}

type forwarder struct{}

func (forwarder) PortForward(ctx context.Context, name, uid string, port int32, s io.ReadWriteCloser) error {
	switch {
	case port == 7:
		return echo(s, s)
	case port == 9:
		n, err := sink(s)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s, "%d\n", n)
		return err
	case port >= 20000:
		return source(s, int64(port-20000)<<20, defaultChunk)
	case port >= 10000:
		return source(s, int64(port-10000)<<20, 64)
	}
	return fmt.Errorf("connection refused: port %d", port)
}

func truthy(req *http.Request, names ...string) bool {
	for _, n := range names {
		switch req.FormValue(n) {
		case "1", "true":
			return true
		}
	}
	return false
}

func main() {
	listen := flag.String("listen", "127.0.0.1:18080", "address")
	useTLS := flag.Bool("tls", false, "serve TLS with a throw-away certificate")
	pprofAddr := flag.String("pprof", "", "pprof address, off when empty")
	flag.Parse()

	const idle = 4 * time.Hour // kubelet's --streaming-connection-idle-timeout default
	mux := http.NewServeMux()
	exec := func(w http.ResponseWriter, req *http.Request) {
		opts := &remotecommand.Options{
			Stdin:  truthy(req, "input", "stdin"),
			Stdout: truthy(req, "output", "stdout"),
			Stderr: truthy(req, "error", "stderr"),
			TTY:    truthy(req, "tty"),
		}
		remotecommand.ServeExec(w, req, executor{}, "pod", "uid", "c", req.Form["command"], opts, idle,
			remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	}
	pf := func(w http.ResponseWriter, req *http.Request) {
		opts, err := portforward.NewV4Options(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, req, forwarder{}, "pod", "uid", opts, idle,
			remotecommand.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
	}
	mux.HandleFunc("/exec", exec)
	mux.HandleFunc("/exec/", exec)
	mux.HandleFunc("/portforward", pf)
	mux.HandleFunc("/portforward/", pf)
	mux.HandleFunc("/portForward/", pf) // the kubelet's spelling
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "kube-upstream pid=%d\n", os.Getpid()) })
	if *pprofAddr != "" {
		go func() { log.Println(http.ListenAndServe(*pprofAddr, nil)) }()
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening %s pid=%d\n", ln.Addr(), os.Getpid())
	srv := &http.Server{Handler: mux}
	if *useTLS {
		if srv.TLSConfig, err = selfsigned.Config(); err != nil {
			log.Fatal(err)
		}
		log.Fatal(srv.ServeTLS(ln, "", ""))
	}
	log.Fatal(srv.Serve(ln))
}
