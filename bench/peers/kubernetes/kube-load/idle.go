package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// idle opens -n echo sessions, keeps them idle for -hold and reports their cost to the proxy. Then
// it requests one more echo from each, to detect sessions that were dropped.
func idle(ctx context.Context) (result, error) {
	rss0, urss0 := rss(proxyPids), rss(upstreamPids)
	sessions := make([]*echoSession, *n)
	var next atomic.Int64
	err := parallel(*conc, func(int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= *n {
				return nil
			}
			e, err := openEcho(ctx)
			if err != nil {
				return err
			}
			if err := e.roundTrip([]byte{1}); err != nil {
				return err
			}
			sessions[i] = e
		}
	})
	if err != nil {
		return nil, err
	}
	a := take()
	time.Sleep(*hold)
	b := take()
	rss1, urss1 := rss(proxyPids), rss(upstreamPids)
	files, _ := fds(proxyPids)
	each := func(what func(*echoSession) error) error {
		return parallel(*conc, func(w int) error {
			for i := w; i < *n; i += *conc {
				if err := what(sessions[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := each(func(e *echoSession) error { return e.roundTrip([]byte{1}) }); err != nil {
		return nil, fmt.Errorf("after idling: %w", err)
	}
	if err := each((*echoSession).close); err != nil {
		return nil, err
	}
	r := result{"sessions": *n, "rss_before_kib": rss0, "rss_held_kib": rss1,
		"kib_per_session":          r5(float64(rss1-rss0) / float64(*n)),
		"upstream_kib_per_session": r5(float64(urss1-urss0) / float64(*n)),
		"files":                    files}
	r.account(a, b)
	return r, nil
}
