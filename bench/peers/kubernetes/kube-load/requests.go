package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

// requests makes -n port-forward requests over one connection, -conc at once: each opens its pair
// of streams, echoes one byte and closes. With -every it reports the proxy's memory, files and
// sockets after that many requests each time.
func requests(ctx context.Context) (result, error) {
	conn, err := pfDial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	points := []map[string]any{}
	a := take()
	for done := 0; done < *n; {
		batch := *n - done
		if *every > 0 && batch > *every {
			batch = *every
		}
		var left atomic.Int64
		left.Store(int64(batch))
		if err := parallel(*conc, func(int) error {
			for left.Add(-1) >= 0 {
				if err := request(conn); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("after %d requests: %w", done, err)
		}
		done += batch
		if *every > 0 {
			files, sockets := fds(proxyPids)
			point := map[string]any{"requests": done, "rss_kib": rss(proxyPids), "files": files, "sockets": sockets,
				"upstream_rss_kib": rss(upstreamPids), "client_goroutines": runtime.NumGoroutine(), "at_s": r5(time.Since(a.t).Seconds())}
			points = append(points, point)
			result{"progress": point}.print()
		}
	}
	b := take()
	r := result{"count": *n, "conc": *conc, "per_s": r5(float64(*n) / b.t.Sub(a.t).Seconds())}
	if *every > 0 {
		r["points"] = points
	}
	r.account(a, b)
	r["proxy_cpu_us_each"] = r5((b.proxy - a.proxy) / float64(*n) * 1e6)
	return r, nil
}

func request(conn httpstream.Connection) error {
	s, err := pfOpen(conn, false, 7)
	if err != nil {
		return err
	}
	if _, err := s.data.Write([]byte{1}); err != nil {
		return err
	}
	if err := s.data.Close(); err != nil {
		return err
	}
	echoed, err := io.ReadAll(s.data)
	if err != nil {
		return err
	}
	if len(echoed) != 1 || echoed[0] != 1 {
		return fmt.Errorf("echoed %v", echoed)
	}
	return s.finish()
}
