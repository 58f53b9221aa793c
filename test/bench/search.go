package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/trials"
	"pitchpipe/driver"
	"pitchpipe/test/measure"
	"pitchpipe/test/sim"
)

// searchFile is a job of 27 epochs of about 3.5 s.
const searchFile = `#!/bin/sh
#SBATCH --job-name=train --cpus-per-task=1 --mem=1G
#SIM epochs=27 seconds=3.5 checkpoint=50ms parallel=0.9
#TUNE mode=apply
#TUNE search trials=%d parallel=%d epochs=27 seed=1
#TUNE knob lr env=LR min=0.001 max=1 scale=log
#TUNE knob width env=WIDTH min=16 max=1024 scale=pow2
%s#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)'
#TUNE quality direction=max
#TUNE checkpoint signal=USR1 grace=60s exit=85
exec ./train
`

// searchBench is a controller with a simulated cluster, in this process.
type searchBench struct {
	trials, parallel int
	system           bool          // the trials have a system knob, too
	pace             float64       // by which the epochs are shorter or longer than 2 to 5 s
	look             time.Duration // between two looks of a user at the search
	trace            io.Writer

	mu     sync.Mutex
	epochs map[string]int // that a trial did, as its checkpoint has it
	starts []time.Time
}

func benchSearch(ctx context.Context, c command) error {
	b := &searchBench{trace: c.trace, pace: 1, epochs: map[string]int{}}
	c.IntVar(&b.trials, "trials", 1000, "trials of the search")
	c.IntVar(&b.parallel, "parallel", 50, "trials that run at one time")
	c.BoolVar(&b.system, "system", false, "the trials also tune their cores")
	c.DurationVar(&b.look, "look", 2*time.Second, "between two looks of a user at the search")
	profile := c.String("profile", "", "a file for the CPU profile; empty = none is kept")
	if err := c.parse(func() bool { return b.trials >= 1 && b.parallel >= 1 && b.look > 0 }); err != nil {
		return err
	}
	report, err := b.run(ctx, *profile)
	if err != nil {
		return err
	}
	return report.print(c.out)
}

// recorded is an epoch of a trial. A trial that goes on says again what it had done.
func (b *searchBench) recorded(w sim.Work) (sim.Measured, bool) {
	lr, _ := strconv.ParseFloat(w.Env["LR"], 64)
	width, _ := strconv.ParseFloat(w.Env["WIDTH"], 64)
	trial := w.Env["PITCHPIPE_TRIAL"]
	b.mu.Lock()
	defer b.mu.Unlock()
	length := time.Millisecond
	if w.Epoch > b.epochs[trial] {
		b.epochs[trial] = w.Epoch
		length = time.Duration(b.pace * (2 + 3*math.Log2(width/16)/6) * float64(time.Second))
	}
	quality := math.Exp(-math.Pow(math.Log10(lr/0.05), 2)) * (1 - 3/math.Sqrt(width)) * (1 - math.Exp(-float64(w.Epoch)/8))
	loss := 1 - quality
	return sim.Measured{Length: length, Joules: 40 * length.Seconds(), Loss: &loss, Quality: &quality}, true
}

// timed is a driver that says when jobs were started.
type timed struct {
	*sim.Cluster
	b *searchBench
}

func (c timed) Start(ctx context.Context, id driver.RequestID, spec driver.Spec) (driver.Job, error) {
	c.b.mu.Lock()
	c.b.starts = append(c.b.starts, time.Now())
	c.b.mu.Unlock()
	return c.Cluster.Start(ctx, id, spec)
}

func (b *searchBench) run(ctx context.Context, profile string) (r searchReport, err error) {
	dir, err := os.MkdirTemp("", "pitchpipe-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "site.yaml"), []byte(policy), 0o600); err != nil {
		return r, err
	}
	site, err := config.LoadSite(filepath.Join(dir, "site.yaml"))
	if err != nil {
		return r, err
	}
	nodes := make([]sim.NodeSpec, (b.parallel+7)/8)
	for i := range nodes {
		nodes[i] = sim.NodeSpec{Name: fmt.Sprintf("node-%d", i+1), Cores: 16, MemoryBytes: 64 << 30}
	}
	cluster, err := sim.New(sim.Config{Nodes: nodes, EnergySource: "replayed", Recorded: b.recorded})
	if err != nil {
		return r, err
	}
	defer cluster.Close()
	state := filepath.Join(dir, "state")
	d, err := daemon.New(daemon.Parts{
		Config: config.Config{State: state, Resync: time.Minute}, Site: site, Driver: timed{cluster, b}, Meter: cluster, Log: slog.New(slog.NewTextHandler(b.trace, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	running, end := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() { gone <- d.Tune(running) }()
	defer func() { end(); err = errors.Join(err, <-gone) }()

	r = searchReport{machine: measure.ThisMachine()}
	if profile == "" {
		profile = filepath.Join(dir, "profile")
	}
	file, err := os.Create(profile) //nolint:gosec // the user names it
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if r.before, err = measure.Used(os.Getpid()); err != nil {
		return r, err
	}
	wrote, err := written()
	if err != nil {
		return r, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return r, err
	}
	begin := time.Now()
	err = b.search(ctx, d.Handler(), cluster, &r)
	r.took = time.Since(begin)
	pprof.StopCPUProfile()
	if err != nil {
		return r, err
	}
	if r.use, err = measure.Used(os.Getpid()); err != nil {
		return r, err
	}
	now, err := written()
	if err != nil {
		return r, err
	}
	r.written, r.all = now-wrote, (r.use.CPU - r.before.CPU).Seconds()
	share, err := product(ctx, profile)
	if err != nil {
		return r, err
	}
	r.ours = share * r.all
	if info, err := os.Stat(filepath.Join(state, "knowledge.db")); err == nil {
		r.database = info.Size()
	}
	r.machine.LoadAfter = measure.Load()
	return r, nil
}

// search runs the search and looks at it as a user does.
func (b *searchBench) search(ctx context.Context, h http.Handler, cluster *sim.Cluster, r *searchReport) error {
	knob := ""
	if b.system {
		knob = "#TUNE knob cores values=1,2\n"
	}
	source := fmt.Sprintf(searchFile, b.trials, b.parallel, knob)
	if _, err := ask(ctx, h, http.MethodPost, api.PathSearches, api.Submission{Request: "bench", Filename: "train.sbatch", Source: []byte(source), Dir: "/home/alice"}, &r.state); err != nil {
		return err
	}
	said := 0
	for !r.state.Over {
		if err := driver.Pause(ctx, b.look); err != nil {
			return err
		}
		r.state = trials.State{}
		n, err := ask(ctx, h, http.MethodGet, strings.Replace(api.PathSearch, "{search}", "bench", 1), nil, &r.state)
		if err != nil {
			return err
		}
		r.answer = max(r.answer, n)
		jobs, err := cluster.List(ctx)
		if err != nil {
			return err
		}
		queued := 0
		for _, j := range jobs {
			if j.State == driver.Pending {
				queued++
			}
		}
		r.queued = max(r.queued, queued)
		if done := 10 * len(r.state.Trials) / b.trials; done > said {
			said = done
			_, _ = fmt.Fprintf(b.trace, "%d of %d trials\n", len(r.state.Trials), b.trials)
		}
	}
	for _, t := range r.state.Trials {
		r.reports, r.jobs = r.reports+len(t.Reports), r.jobs+len(t.Jobs)
	}
	b.mu.Lock()
	r.quickest = quickest(b.starts)
	b.mu.Unlock()
	return r.times(ctx, h)
}

// quickest is the largest number of starts in any ten seconds, for each second.
func quickest(starts []time.Time) float64 {
	const over = 10 * time.Second
	most, from := 0, 0
	for to := range starts {
		for starts[to].Sub(starts[from]) > over {
			from++
		}
		most = max(most, to-from+1)
	}
	return float64(most) / over.Seconds()
}

// ask is a request of a user, and how long the answer was.
func ask(ctx context.Context, h http.Handler, method, path string, body, answer any) (int, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	as := peer.NewContext(ctx, peer.Peer{UID: 4242, Name: "alice"})
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(as, method, path, bytes.NewReader(raw)))
	if rec.Code != http.StatusOK {
		return 0, fmt.Errorf("%s %s: %d %s", method, path, rec.Code, rec.Body)
	}
	if text, ok := answer.(*[]byte); ok {
		*text = rec.Body.Bytes()
		return rec.Body.Len(), nil
	}
	return rec.Body.Len(), understand(rec.Body.Bytes(), answer)
}

// understand is the user's part of the work: product leaves it out.
//
//go:noinline
func understand(answer []byte, into any) error { return json.Unmarshal(answer, into) }

// written is how many bytes this process wrote, into the store for the most part.
func written() (int64, error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	io, err := self.IO()
	return int64(io.WChar), err //nolint:gosec // less than an exabyte
}

// product is the share of a CPU profile outside of what only tests have: the simulated cluster, and the user.
func product(ctx context.Context, profile string) (float64, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-ignore", `^pitchpipe/test/|^main\.understand$`, profile) //nolint:gosec // a file of this bench
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("go tool pprof: %w", err)
	}
	found := regexp.MustCompile(`accounting for \S+, ([0-9.]+)% of`).FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("go tool pprof says no share: %.200s", out)
	}
	percent, err := strconv.ParseFloat(string(found[1]), 64)
	return percent / 100, err
}
