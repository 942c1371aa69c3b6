package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

type countWriter struct {
	n     atomic.Int64
	first *atomic.Int64 // unix nanos of the first byte over all sessions
}

// flowing counts the sessions that have received at least one byte.
var flowing atomic.Int64

func markFirst(f *atomic.Int64) {
	if f.Load() == 0 {
		f.CompareAndSwap(0, time.Now().UnixNano())
	}
}

func (c *countWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		markFirst(c.first)
		if c.n.Add(int64(len(p))) == int64(len(p)) && flowing.Add(1) == int64(*n) && *announce {
			result{"progress": "every session receives"}.print()
		}
	}
	return len(p), nil
}

type zeroReader struct {
	left  int64
	chunk int
	first *atomic.Int64
}

func (z *zeroReader) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	markFirst(z.first)
	if len(p) > z.chunk {
		p = p[:z.chunk]
	}
	if int64(len(p)) > z.left {
		p = p[:z.left]
	}
	clear(p)
	z.left -= int64(len(p))
	return len(p), nil
}

func parallel(k int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, k)
	for i := 0; i < k; i++ {
		wg.Add(1)
		go func() { defer wg.Done(); errs[i] = f(i) }()
	}
	wg.Wait()
	var first error
	bad := 0
	for _, e := range errs {
		if e != nil {
			bad++
			if first == nil {
				first = e
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d failed, first: %w", bad, k, first)
	}
	return nil
}

func throughput(ctx context.Context) (result, error) {
	if *window > 0 {
		return steady(ctx)
	}
	per := *total / int64(*n)
	var first atomic.Int64
	var got atomic.Int64
	var shared httpstream.Connection
	if isPF() {
		per = per >> 20 << 20 // the port number encodes MiB
		if per == 0 {
			return nil, errors.New("less than 1 MiB per session")
		}
		if *mux {
			var err error
			if shared, err = pfDial(); err != nil {
				return nil, err
			}
			defer shared.Close()
		}
	}
	open := func(port int) (*pfSession, error) {
		if shared != nil {
			return pfOpen(shared, false, port)
		}
		c, err := pfDial()
		if err != nil {
			return nil, err
		}
		return pfOpen(c, true, port)
	}
	down := func(int) error {
		w := &countWriter{first: &first}
		if isPF() {
			s, err := open(sourcePort(per))
			if err != nil {
				return err
			}
			if _, err := io.Copy(w, struct{ io.Reader }{s.data}); err != nil {
				return err
			}
			if err := s.finish(); err != nil {
				return err
			}
		} else if err := runExec(ctx, fmt.Sprintf("source=%d:%d", per, *chunk), nil, w); err != nil {
			return err
		}
		if w.n.Load() != per {
			return fmt.Errorf("received %d of %d", w.n.Load(), per)
		}
		got.Add(per)
		return nil
	}
	up := func(int) error {
		z := &zeroReader{left: per, chunk: *chunk, first: &first}
		var buf bytes.Buffer
		if isPF() {
			s, err := open(9)
			if err != nil {
				return err
			}
			cb := make([]byte, *chunk)
			if _, err := io.CopyBuffer(struct{ io.Writer }{s.data}, z, cb); err != nil {
				return err
			}
			s.data.Close()
			if _, err := io.Copy(&buf, s.data); err != nil {
				return err
			}
			if err := s.finish(); err != nil {
				return err
			}
		} else if err := runExec(ctx, sinkCommand(per), z, &buf); err != nil {
			return err
		}
		if strings.TrimSpace(buf.String()) != strconv.FormatInt(per, 10) {
			return fmt.Errorf("sink counted %q, sent %d", buf.String(), per)
		}
		got.Add(per)
		return nil
	}
	// both: every byte that is sent returns, so half of the bytes travel each way
	both := func(int) error {
		z := &zeroReader{left: per / 2, chunk: *chunk, first: &first}
		w := &countWriter{first: &first}
		if isPF() {
			s, err := open(7)
			if err != nil {
				return err
			}
			sent := make(chan error, 1)
			go func() {
				_, err := io.CopyBuffer(struct{ io.Writer }{s.data}, z, make([]byte, *chunk))
				s.data.Close()
				sent <- err
			}()
			if _, err := io.Copy(w, struct{ io.Reader }{s.data}); err != nil {
				return err
			}
			if err := errors.Join(<-sent, s.finish()); err != nil {
				return err
			}
		} else if err := runExec(ctx, "echo", z, w); err != nil {
			return err
		}
		if w.n.Load() != per/2 {
			return fmt.Errorf("%d of %d came back", w.n.Load(), per/2)
		}
		got.Add(per)
		return nil
	}
	f := map[string]func(int) error{"download": down, "upload": up, "both": both}[*test]
	a := take()
	err := parallel(*n, f)
	b := take()
	if err != nil {
		return nil, err
	}
	xfer := float64(b.t.UnixNano()-first.Load()) / 1e9
	gib := float64(got.Load()) / (1 << 30)
	r := result{"sessions": *n, "bytes": got.Load(), "chunk": *chunk, "xfer_s": r5(xfer), "mib_per_s": r5(gib * 1024 / xfer)}
	r.account(a, b)
	r.perGiB(a, b, gib)
	r["proxy_cpu_us_per_write"] = r5((b.proxy - a.proxy) / (float64(got.Load()) / float64(*chunk)) * 1e6)
	return r, nil
}

// sourcePort returns the port of kube-upstream that sends this many bytes: from 20000 on in large
// writes, from 10000 on in writes of 64 bytes; both count MiB.
func sourcePort(bytes int64) int {
	if *chunk == 64 {
		return 10000 + int(bytes>>20)
	}
	return 20000 + int(bytes>>20)
}

// sinkCommand returns a command that counts stdin to its end, or, if the protocol cannot end stdin,
// up to this many bytes.
func sinkCommand(bytes int64) string {
	if *via == "ws4" {
		return fmt.Sprintf("sink=%d", bytes)
	}
	return "sink"
}
