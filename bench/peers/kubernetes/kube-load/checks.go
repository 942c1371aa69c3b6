package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/exec"
)

// verify echoes -bytes of random data over -n sessions, compares SHA-256 and length, and ends each
// session with a half-close of stdin.
func verify(ctx context.Context) (result, error) {
	per := *total / int64(*n)
	err := parallel(*n, func(i int) error {
		src := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), 7})
		hin, hout := sha256.New(), sha256.New()
		in := io.TeeReader(io.LimitReader(src, per), hin)
		var got atomic.Int64
		var first atomic.Int64
		cw := &countWriter{first: &first}
		out := io.MultiWriter(hout, cw)
		if isPF() {
			c, err := pfDial()
			if err != nil {
				return err
			}
			s, err := pfOpen(c, true, 7)
			if err != nil {
				return err
			}
			werr := make(chan error, 1)
			go func() {
				_, err := io.CopyBuffer(struct{ io.Writer }{s.data}, struct{ io.Reader }{in}, make([]byte, *chunk))
				s.data.Close()
				werr <- err
			}()
			if _, err := io.Copy(out, struct{ io.Reader }{s.data}); err != nil {
				return err
			}
			if err := <-werr; err != nil {
				return err
			}
			if err := s.finish(); err != nil {
				return err
			}
		} else if err := runExec(ctx, "echo", in, out); err != nil {
			return err
		}
		got.Store(cw.n.Load())
		if got.Load() != per || !bytes.Equal(hin.Sum(nil), hout.Sum(nil)) {
			return fmt.Errorf("session %d: %d of %d bytes back, digests equal: %v", i, got.Load(), per, bytes.Equal(hin.Sum(nil), hout.Sum(nil)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return result{"sessions": *n, "bytes": per * int64(*n), "ok": true}, nil
}

// stall opens -n downloads whose reader stops after the first write, holds them for -hold, and
// reports the proxy's memory (back-pressure).
func stall(ctx context.Context) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rss0 := rss(proxyPids)
	urss0 := rss(upstreamPids)
	var stalled atomic.Int64
	block := make(chan struct{})
	defer close(block)
	for i := 0; i < *n; i++ {
		if isPF() {
			c, err := pfDial()
			if err != nil {
				return nil, err
			}
			s, err := pfOpen(c, true, 20000+4096)
			if err != nil {
				return nil, err
			}
			go func() {
				io.ReadFull(s.data, make([]byte, 1))
				stalled.Add(1)
				<-block
			}()
			continue
		}
		go runExec(ctx, "source=4Gi", nil, blockWriter{&stalled, block})
	}
	time.Sleep(*hold)
	rss1 := rss(proxyPids)
	r := result{"sessions": *n, "stalled": stalled.Load(), "rss_before_kib": rss0, "rss_stalled_kib": rss1,
		"kib_per_session":          r5(float64(rss1-rss0) / float64(*n)),
		"upstream_kib_per_session": r5(float64(rss(upstreamPids)-urss0) / float64(*n))}
	return r, nil
}

type blockWriter struct {
	n     *atomic.Int64
	block chan struct{}
}

func (b blockWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		b.n.Add(1)
		<-b.block
	}
	return len(p), nil
}

func exit(ctx context.Context) (result, error) {
	r := result{}
	for _, k := range []int{0, 1, 7, 137} {
		err := runExec(ctx, fmt.Sprintf("exit=%d", k), nil, io.Discard)
		var ce exec.CodeExitError
		switch {
		case err == nil:
			r[fmt.Sprint("exit", k)] = 0
		case errors.As(err, &ce):
			r[fmt.Sprint("exit", k)] = ce.Code
		default:
			r[fmt.Sprint("exit", k)] = err.Error()
		}
	}
	return r, nil
}
