package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"
)

// an echo session: send writes stdin, recv gets stdout's writes
type echoSession struct {
	in   io.WriteCloser
	out  chan int
	done chan error
	stop context.CancelFunc
}

type chanWriter chan int

func (c chanWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		c <- len(p)
	}
	return len(p), nil
}

func openEcho(ctx context.Context) (*echoSession, error) {
	ctx, cancel := context.WithCancel(ctx)
	es := &echoSession{out: make(chan int, 16), done: make(chan error, 1), stop: cancel}
	if isPF() {
		c, err := pfDial()
		if err != nil {
			return nil, err
		}
		s, err := pfOpen(c, true, 7)
		if err != nil {
			return nil, err
		}
		es.in = s.data
		go func() {
			_, err := io.Copy(chanWriter(es.out), s.data)
			if e := s.finish(); err == nil {
				err = e
			}
			es.done <- err
		}()
		return es, nil
	}
	pr, pw := io.Pipe()
	es.in = pw
	go func() {
		err := runExec(ctx, "echo", pr, chanWriter(es.out))
		pr.CloseWithError(fmt.Errorf("session ended: %v", err))
		es.done <- err
	}()
	return es, nil
}

func (e *echoSession) roundTrip(m []byte) error {
	if _, err := e.in.Write(m); err != nil {
		return err
	}
	for got := 0; got < len(m); {
		select {
		case k := <-e.out:
			got += k
		case err := <-e.done:
			e.done <- err
			return fmt.Errorf("session ended: %v", err)
		case <-time.After(30 * time.Second):
			return errors.New("no echo in 30 s")
		}
	}
	return nil
}

func (e *echoSession) close() error { e.in.Close(); return <-e.done }

func pct(d []time.Duration, p float64) float64 {
	i := int(p*float64(len(d))+0.5) - 1
	if i < 0 {
		i = 0
	}
	if i >= len(d) {
		i = len(d) - 1
	}
	return r5(float64(d[i].Nanoseconds()) / 1e3)
}

func latency(ctx context.Context) (result, error) {
	e, err := openEcho(ctx)
	if err != nil {
		return nil, err
	}
	m := make([]byte, *msg)
	for i := 0; i < 200; i++ {
		if err := e.roundTrip(m); err != nil {
			return nil, err
		}
	}
	var d []time.Duration
	a := take()
	for len(d) < *rounds && (*within == 0 || time.Since(a.t) < *within) {
		t := time.Now()
		if err := e.roundTrip(m); err != nil {
			return nil, err
		}
		d = append(d, time.Since(t))
	}
	b := take()
	if err := e.close(); err != nil {
		return nil, err
	}
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	r := result{"rounds": len(d), "msg": *msg, "p50_us": pct(d, .5), "p90_us": pct(d, .9), "p99_us": pct(d, .99), "p999_us": pct(d, .999), "max_us": pct(d, 1)}
	r.account(a, b)
	r["proxy_cpu_us_each"] = r5((b.proxy - a.proxy) / float64(len(d)) * 1e6)
	return r, nil
}
