package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// cpuOf returns the user and system time of processes so far, in seconds: from their CPU clocks,
// which count nanoseconds, or from /proc, which counts hundredths of a second.
func cpuOf(pids []int) float64 {
	var sum float64
	for _, pid := range pids {
		if s, ok := cpuClock(pid); ok {
			sum += s
		} else {
			sum += procCPU(pid)
		}
	}
	return sum
}

// cpuClock reads the kernel's CPU clock of another process (clock_getcpuclockid(3)).
func cpuClock(pid int) (float64, bool) {
	const schedClock = 2
	var ts syscall.Timespec
	id := int64(^pid)<<3 | schedClock
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(int32(id)), uintptr(unsafe.Pointer(&ts)), 0)
	return float64(ts.Sec) + float64(ts.Nsec)/1e9, errno == 0
}

func procCPU(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+2:]))
	u, _ := strconv.ParseFloat(f[11], 64)
	s, _ := strconv.ParseFloat(f[12], 64)
	return (u + s) / 100
}

func selfCPU() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

// machineBusy returns the busy time of all CPUs in seconds: user nice system irq softirq steal.
func machineBusy() float64 {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	var t float64
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		v, _ := strconv.ParseFloat(f[i], 64)
		t += v
	}
	return t / 100
}

// status sums a line of /proc/PID/status over processes: KiB or a count.
func status(pids []int, key string) int64 {
	var sum int64
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for _, l := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(l, key+":") {
				v, _ := strconv.ParseInt(strings.Fields(l)[1], 10, 64)
				sum += v
			}
		}
	}
	return sum
}

func rss(pids []int) int64 { return status(pids, "VmRSS") }

// fds counts open files, and the sockets among them.
func fds(pids []int) (all, sockets int) {
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, _ := os.ReadDir(dir)
		all += len(entries)
		for _, e := range entries {
			if target, err := os.Readlink(dir + "/" + e.Name()); err == nil && strings.HasPrefix(target, "socket:") {
				sockets++
			}
		}
	}
	return all, sockets
}

func parsePids(list string) (pids []int) {
	for _, s := range strings.Split(list, ",") {
		if pid, err := strconv.Atoi(s); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

type snap struct {
	t                          time.Time
	proxy, up, self, allOfThem float64
}

func take() snap {
	return snap{time.Now(), cpuOf(proxyPids), cpuOf(upstreamPids), selfCPU(), machineBusy()}
}

type result map[string]any

// r5 rounds to five significant digits.
func r5(f float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 5, 64), 64)
	return v
}

// account adds the cost of the time between two snapshots, and the share of the machine that other
// programs used in it.
func (r result) account(a, b snap) {
	wall := b.t.Sub(a.t).Seconds()
	r["wall_s"] = r5(wall)
	r["cpu_proxy_s"] = r5(b.proxy - a.proxy)
	r["cpu_upstream_s"] = r5(b.up - a.up)
	r["cpu_client_s"] = r5(b.self - a.self)
	ours := b.proxy - a.proxy + b.up - a.up + b.self - a.self
	r["foreign_share"] = r5((b.allOfThem - a.allOfThem - ours) / (wall * float64(runtime.NumCPU())))
}

func (r result) print() {
	r["via"], r["test"] = *via, *test
	b, _ := json.Marshal(r)
	fmt.Println(string(b))
}
