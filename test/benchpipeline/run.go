package benchpipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/jobspecs"
	"pitchpipe/test/measure"
	"pitchpipe/test/sandbox"
)

// Options say how much is searched.
type Options struct {
	Bin     string // folder of pitchpipe, pitchpipe-exporter and workload
	Dir     string // empty folder for all that is written
	Trials  int
	Epochs  int
	Repeats int
	Only    []string  // kinds; empty: all
	Trace   io.Writer // progress
}

// mode is how a search goes about the system knobs.
type mode struct {
	name   string
	system tuning.SystemMode
	best   bool // under the best system setting found beforehand
}

// modes in the order of the table.
func modes() []mode {
	return []mode{
		{"fixed (V1)", tuning.Fixed, false},
		{"searched (V2)", tuning.Searched, false},
		{"pipelined", tuning.Pipelined, false},
		{"fixed, best setting", tuning.Fixed, true},
		{"pipelined, known kind", tuning.Pipelined, false},
	}
}

// row is what one search took.
type row struct {
	kind, mode string
	repeat     int // from 1; 0: beforehand
	seconds    float64
	joules     float64
	source     string // of the joules; empty: some trial has none
	quality    float64
	trials     int
	failed     int // of them
	tuned      int // of them that ran on other cores than their user asked for
}

// Run searches, and reports what it took. A kind whose programs are absent is left out.
func Run(ctx context.Context, o Options) (Report, error) {
	r := Report{Machine: measure.ThisMachine(), options: o}
	var all []kind
	for _, k := range kinds() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, k.name) {
			continue
		}
		if why := k.missing(ctx); why != "" {
			r.notes = append(r.notes, why)
			continue
		}
		all = append(all, k)
	}
	b := &bench{Options: o, began: time.Now(), left: len(all) * (2 + o.Repeats*len(modes()))}
	best := map[string]int{}
	for _, k := range all {
		least := 0.0
		for _, cores := range []int{1, 2} { // with seeds that are not compared
			x, err := b.search(ctx, k, mode{name: "beforehand", system: tuning.Fixed}, 0, cores, "")
			if err != nil {
				return r, err
			}
			if best[k.name] == 0 || x.seconds < least {
				best[k.name], least = cores, x.seconds
			}
		}
		r.notes = append(r.notes, fmt.Sprintf("%s takes %d by itself; the best fixed number of cores is %d", k.name, k.cores, best[k.name]))
	}
	for repeat := 1; repeat <= o.Repeats; repeat++ {
		for _, k := range all {
			for i := range modes() {
				// Each repetition begins with another mode, so that what drifts hits all. A known kind follows its first search.
				m := modes()[(i+repeat-1)%3]
				if i >= 3 {
					m = modes()[i]
				}
				cores, state := k.cores, ""
				if m.best {
					cores = best[k.name]
				}
				if m.system == tuning.Pipelined {
					state = fmt.Sprintf("%s-%d", k.name, repeat)
				}
				x, err := b.search(ctx, k, m, repeat, cores, state)
				if err != nil {
					return r, err
				}
				r.rows = append(r.rows, x)
			}
		}
	}
	r.Machine.LoadAfter = measure.Load()
	return r, nil
}

type bench struct {
	Options
	began      time.Time
	done, left int
}

// search runs one search with its own controller. state names the store that it shares; empty: with none.
func (b *bench) search(ctx context.Context, k kind, m mode, repeat, cores int, state string) (out row, err error) {
	b.done++
	dir := filepath.Join(b.Dir, fmt.Sprintf("%02d", b.done))
	if state == "" {
		state = fmt.Sprintf("%02d", b.done)
	}
	// Paths of sockets are short.
	s := &site{dir: dir, client: api.NewClient(filepath.Join(dir, "c.sock"))}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(ctx, b.Bin, filepath.Join(b.Dir, "state-"+state)); err != nil {
		return out, err
	}
	o := b.Options
	if repeat == 0 {
		o.Trials = (o.Trials + 1) / 2 // enough to tell the better number of cores
	}
	x, err := s.client.Search(ctx, api.Submission{
		Filename: "job.sbatch", Source: []byte(k.file(o, cores, string(m.system), 100+repeat)), Dir: dir,
		Env: map[string]string{"PITCHPIPE_WORKLOAD": filepath.Join(b.Bin, "workload")},
	})
	if err != nil {
		return out, fmt.Errorf("search %s: %w", k.name, err)
	}
	for !x.Over || x.Searcher().Busy() > 0 {
		if err := driver.Pause(ctx, 300*time.Millisecond); err != nil {
			return out, err
		}
		if x, err = s.client.SearchState(ctx, x.ID); err != nil {
			return out, fmt.Errorf("ask about the search: %w", err)
		}
	}
	out = rowOf(x, float64(cores))
	out.kind, out.mode, out.repeat = k.name, m.name, repeat
	_, _ = fmt.Fprintf(b.Trace, "[%5.0f s] %2d/%d  %-8s %-22s %d  %6.1f s  quality %.4f  %d of %d trials on other cores\n",
		time.Since(b.began).Seconds(), b.done, b.left, k.name, m.name, repeat, out.seconds, out.quality, out.tuned, out.trials)
	return out, nil
}

func rowOf(x trials.State, cores float64) (out row) {
	out.seconds, out.trials = x.Ended.Sub(x.Created).Seconds(), len(x.Trials)
	s := x.Searcher()
	if ranking := s.Ranking(); len(ranking) > 0 {
		best := s.Best(ranking[0])
		out.quality = best.Value
	}
	known := true
	for _, t := range x.Trials {
		r := t.Last()
		if slices.ContainsFunc(t.Reports, func(r searcher.Report) bool { return r.Cores > 0 && r.Cores != cores }) {
			out.tuned++
		}
		if len(t.Reports) == 0 {
			out.failed++
			continue
		}
		if known = known && r.Joules != nil; known {
			out.joules += *r.Joules
			out.source = r.Source
		}
	}
	if !known {
		out.joules, out.source = 0, ""
	}
	return out
}

// site is an exporter and a controller with its own scheduler.
type site struct {
	dir       string
	client    *api.Client
	processes []*sandbox.Process
}

func (s *site) start(ctx context.Context, bin, state string) error {
	files := map[string][]byte{"site.yaml": []byte("default:\n  max_mode: apply\n  control: 0\n")}
	var err error
	if files["boost.py"], err = programs.ReadFile("programs/boost.py"); err != nil {
		return err
	}
	if files["digits.py"], err = fs.ReadFile(jobspecs.Files(), "slurm/digits.py"); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	meter := filepath.Join(s.dir, "e.sock")
	if err := s.launch(ctx, filepath.Join(bin, "pitchpipe-exporter"), "--socket", meter, "--web.listen-address="); err != nil {
		return err
	}
	if err := s.launch(ctx, filepath.Join(bin, "pitchpipe"), "controller", "--config=", "--state", state, "--socket", filepath.Join(s.dir, "c.sock"),
		"--exporter.socket", meter, "--local.cluster", "bench", "--listen=", "--site", filepath.Join(s.dir, "site.yaml")); err != nil {
		return err
	}
	for range 100 {
		if _, err = s.client.Jobs(ctx); err == nil {
			return driver.Pause(ctx, 2*time.Second) // a job that begins before the first readings of the energy has none
		}
		if err := driver.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the controller does not answer, see %s: %w", s.dir, err)
}

func (s *site) launch(ctx context.Context, program string, args ...string) error {
	name := filepath.Base(program)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...) // stop ends it
	p, err := sandbox.Begin(name, filepath.Join(s.dir, name+".log"), cmd)
	if err == nil {
		s.processes = append(s.processes, p)
	}
	return err
}

// stop ends the jobs that run, then the programs.
func (s *site) stop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for open := true; open && ctx.Err() == nil; {
		jobs, _ := s.client.Jobs(ctx) // none where the controller is gone
		open = false
		for _, j := range jobs {
			if j.EndedAt.IsZero() {
				open = true
				_ = s.client.Stop(ctx, j.ID) // asked again until it has ended
			}
		}
		if open {
			_ = driver.Pause(ctx, 200*time.Millisecond)
		}
	}
	s.client.Close()
	for _, p := range slices.Backward(s.processes) {
		err = errors.Join(err, p.Leave(20*time.Second))
	}
	return err
}
