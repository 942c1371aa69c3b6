package main

import (
	"context"
	"io"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// setup runs -n sessions to their end, -conc at once: an exec that exits with 0, or a dial with one
// echoed byte.
func setup(ctx context.Context) (result, error) {
	var left atomic.Int64
	left.Store(int64(*n))
	var mu sync.Mutex
	var d []time.Duration
	a := take()
	err := parallel(*conc, func(int) error {
		for left.Add(-1) >= 0 {
			t := time.Now()
			if err := setUpOne(ctx); err != nil {
				return err
			}
			mu.Lock()
			d = append(d, time.Since(t))
			mu.Unlock()
		}
		return nil
	})
	b := take()
	if err != nil {
		return nil, err
	}
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	r := result{"count": *n, "conc": *conc, "per_s": r5(float64(*n) / b.t.Sub(a.t).Seconds()), "p50_us": pct(d, .5), "p99_us": pct(d, .99)}
	r.account(a, b)
	r["proxy_cpu_ms_each"] = r5((b.proxy - a.proxy) / float64(*n) * 1e3)
	return r, nil
}

func setUpOne(ctx context.Context) error {
	if !isPF() {
		return runExec(ctx, "exit=0", nil, io.Discard)
	}
	e, err := openEcho(ctx)
	if err != nil {
		return err
	}
	if err := e.roundTrip([]byte{1}); err != nil {
		return err
	}
	return e.close()
}
