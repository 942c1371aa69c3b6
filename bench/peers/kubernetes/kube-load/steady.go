package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	endless = int64(1) << 50
	// settle is how long all sessions run before the figures count: compilers and windows need it.
	settle = 2 * time.Second
)

// steady downloads over -n exec sessions that never end. It measures for -window, from 2 s after
// the last of them has received. The sessions end with this process.
func steady(ctx context.Context) (result, error) {
	if isPF() || *test != "download" {
		return nil, errors.New("-window is for downloads over exec")
	}
	var first atomic.Int64
	writers := make([]countWriter, *n)
	ended := make(chan error, *n)
	for i := range writers {
		writers[i].first = &first
		go func() { ended <- runExec(ctx, fmt.Sprintf("source=%d:%d", endless, *chunk), nil, &writers[i]) }()
	}
	received := func() (sum int64) {
		for i := range writers {
			sum += writers[i].n.Load()
		}
		return sum
	}
	for flowing.Load() < int64(*n) {
		if err := pause(ended, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if err := pause(ended, settle); err != nil {
		return nil, err
	}
	a, before := take(), received()
	err := pause(ended, *window)
	b, after := take(), received()
	if err != nil {
		return nil, err
	}
	gib := float64(after-before) / (1 << 30)
	r := result{"sessions": *n, "bytes": after - before, "chunk": *chunk, "mib_per_s": r5(gib * 1024 / b.t.Sub(a.t).Seconds())}
	r.account(a, b)
	r.perGiB(a, b, gib)
	return r, nil
}

// pause fails if a session ends meanwhile.
func pause(ended <-chan error, d time.Duration) error {
	select {
	case err := <-ended:
		return fmt.Errorf("a session ended before the measurement did: %v", err)
	case <-time.After(d):
		return nil
	}
}

// perGiB adds what each side spent for a GiB.
func (r result) perGiB(a, b snap, gib float64) {
	r["proxy_cpu_s_per_gib"] = r5((b.proxy - a.proxy) / gib)
	r["upstream_cpu_s_per_gib"] = r5((b.up - a.up) / gib)
	r["client_cpu_s_per_gib"] = r5((b.self - a.self) / gib)
}
