package benchexporter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/measure"
	"pitchpipe/test/powercapsim"
	"pitchpipe/test/sandbox"
)

// Options say what is measured.
type Options struct {
	Exporter     string // the program
	NodeExporter string // the program; empty = it is not measured
	Workload     Workload
	Scrapes      int
	Fresh        int           // scrapes that each meet a sample that no scrape has read
	Over         time.Duration // for which sampling alone is measured
	Trace        io.Writer
}

// Run measures both programs, one after the other, with the same jobs there.
func Run(ctx context.Context, o Options) (Report, error) {
	r := Report{Machine: measure.ThisMachine(), Workload: o.Workload}
	if os.Geteuid() != 0 {
		return r, errors.New("needs root, for cgroups and perf events")
	}
	dir, err := os.MkdirTemp("", "pitchpipe-bench-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sys := filepath.Join(dir, "sys")
	follow, err := powercapsim.Follow(powercapsim.Config{Dir: sys, Packages: 2, DRAM: true})
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var joules sync.WaitGroup
	joules.Go(func() { _ = follow(ctx) }) // the tree ends with the bench
	defer func() { cancel(); joules.Wait() }()

	_, _ = fmt.Fprintf(o.Trace, "making %d jobs of %d processes\n", o.Workload.Jobs, o.Workload.Processes)
	work, err := begin(ctx, o.Workload.Jobs, o.Workload.Processes)
	defer work.end()
	if err != nil {
		return r, err
	}
	ports, err := sandbox.Ports(2)
	if err != nil {
		return r, err
	}
	at := sandbox.Loopback(ports[0])
	r.Exporter, err = o.measure(ctx, o.Exporter, at, func(page string) bool {
		r.Seen = strings.Count(page, "\npitchpipe_job_info{")
		return strings.Count(page, `pitchpipe_job_perf_task_clock_seconds_total{manager="local",job_id="`+prefix()) == o.Workload.Jobs && strings.Contains(page, "pitchpipe_node_zone_energy")
	}, "--socket", filepath.Join(dir, "s"), "--web.listen-address", at, "--path.sysfs", sys, "--path.cgroupfs", "/sys/fs/cgroup", "--log.level=error")
	if err != nil {
		return r, fmt.Errorf("%s: %w", o.Exporter, err)
	}
	if o.NodeExporter != "" {
		at = sandbox.Loopback(ports[1])
		other, err := o.measure(ctx, o.NodeExporter, at, func(page string) bool { return strings.Contains(page, "node_rapl_package_joules_total") },
			"--web.listen-address", at, "--path.sysfs", sys, "--log.level=error", "--collector.disable-defaults", "--collector.cpu", "--collector.meminfo",
			"--collector.loadavg", "--collector.stat", "--collector.pressure", "--collector.rapl", "--collector.perf")
		if err != nil {
			return r, fmt.Errorf("%s: %w", o.NodeExporter, err)
		}
		r.NodeExporter = &other
	}
	r.Machine.LoadAfter = measure.Load()
	return r, nil
}

// measure starts a program, waits until its page is ready, and asks it.
func (o Options) measure(ctx context.Context, program, at string, ready func(page string) bool, args ...string) (c Cost, err error) {
	_, _ = fmt.Fprintf(o.Trace, "measuring %s\n", filepath.Base(program))
	st, err := os.Stat(program)
	if err != nil {
		return c, err
	}
	c.Binary = st.Size()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &said
	p, err := sandbox.Begin(filepath.Base(program), "", cmd)
	if err != nil {
		return c, err
	}
	defer func() {
		p.End(syscall.SIGTERM, time.Minute)
		if err != nil && said.Len() > 0 {
			err = fmt.Errorf("%w: %.500s", err, said.String())
		}
	}()
	client := newClient("http://" + at + "/metrics")
	defer client.close()
	if c.Series, err = client.await(ctx, ready); err != nil {
		return c, err
	}
	pid := cmd.Process.Pid
	if err := driver.Pause(ctx, settle); err != nil {
		return c, err
	}

	// 1. No one asks: that is sampling.
	before, err := cpuOf(pid)
	if err != nil {
		return c, err
	}
	if err := driver.Pause(ctx, o.Over); err != nil {
		return c, err
	}
	after, err := cpuOf(pid)
	if err != nil {
		return c, err
	}
	c.Sampling = (after - before).Seconds() / o.Over.Seconds()
	// 2. One asks as fast as he can, and one with a sample's time between.
	if c.Fast, err = client.scrapes(ctx, pid, o.Scrapes, 0, c.Sampling); err != nil {
		return c, err
	}
	if c.Spaced, err = client.scrapes(ctx, pid, o.Fresh, 1100*time.Millisecond, c.Sampling); err != nil {
		return c, err
	}
	// 3. What it holds.
	used, err := measure.Used(pid)
	if err != nil {
		return c, err
	}
	c.RSS, c.Peak = used.RSS, used.Peak
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	c.Descriptors = len(fds)
	return c, err
}

// client asks for one page over one connection, compressed as Prometheus does.
type client struct {
	page string
	http *http.Client
}

func newClient(page string) *client {
	return &client{page, &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 30 * time.Second}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) get(ctx context.Context, encoding string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.page, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", encoding)
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", res.StatusCode, body)
	}
	return body, err
}

// settle is how long a program is left alone at first: what it does once about each
// process is not what it does all the time.
const settle = 8 * time.Second

// patience is how long a program may take to show what it is asked for.
const patience = time.Minute

// await asks until the page is ready and counts its series.
func (c *client) await(ctx context.Context, ready func(page string) bool) (series int, err error) {
	for began := time.Now(); ; {
		body, err := c.get(ctx, "identity")
		if err == nil && ready(string(body)) {
			for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
				if !strings.HasPrefix(lines.Text(), "#") {
					series++
				}
			}
			return series, nil
		}
		if time.Since(began) > patience {
			return 0, errors.Join(errors.New("its page does not show what is to be measured"), err)
		}
		if err := driver.Pause(ctx, 200*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// scrapes asks so many times with pauses between. Of the CPU time it leaves out what
// sampling took meanwhile.
func (c *client) scrapes(ctx context.Context, pid, count int, pause time.Duration, sampling float64) (s Scrapes, err error) {
	before, err := cpuOf(pid)
	if err != nil {
		return s, err
	}
	began := time.Now()
	for range count {
		if pause > 0 {
			if err := driver.Pause(ctx, pause); err != nil {
				return s, err
			}
		}
		asked := time.Now()
		body, err := c.get(ctx, "gzip")
		if err != nil {
			return s, err
		}
		s.Times = append(s.Times, time.Since(asked))
		s.Bytes = len(body)
	}
	over := time.Since(began)
	after, err := cpuOf(pid)
	if err != nil {
		return s, err
	}
	slices.Sort(s.Times)
	if count > 0 {
		s.CPU = max((after-before).Seconds()-sampling*over.Seconds(), 0) * 1000 / float64(count)
	}
	return s, nil
}
