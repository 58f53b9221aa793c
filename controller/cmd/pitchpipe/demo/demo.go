package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pitchpipe/controller/daemon/api"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/jobspecs"
)

// Config is what the demo needs.
type Config struct {
	Self     string // the pitchpipe program
	Exporter string // the exporter program
	Workload string // the program that the jobs run
	Keep     string // keep the state and logs in this directory; empty = remove them

	// Say tells what comes next; Show is called often with the jobs that run.
	Say  func(text string)
	Show func(jobs []api.Job)
	Log  *slog.Logger
}

// job is one submission.
type job struct {
	name  string // of the report
	file  string // job file in jobspecs/slurm
	kind  string
	input int
	env   map[string]string
	off   bool
}

// kinds are the kinds that are tuned for time, in the order of the demo.
func kinds() []string { return []string{"dense", "jacobi", "bfs", "kmeans", "sort"} }

// Run runs the demo to its end.
func Run(ctx context.Context, cfg Config) (Report, error) {
	dir := cfg.Keep
	if dir == "" {
		tmp, err := os.MkdirTemp("", "pitchpipe-demo-")
		if err != nil {
			return Report{}, fmt.Errorf("make a directory: %w", err)
		}
		defer func() { _ = os.RemoveAll(tmp) }() // what stays behind is in the temporary folder
		dir = tmp
	}
	stage := &stage{cfg: cfg, dir: dir}
	defer stage.stop(context.WithoutCancel(ctx))
	if err := stage.start(ctx); err != nil {
		return Report{}, err
	}
	report, err := stage.play(ctx)
	if err != nil && ctx.Err() != nil {
		return report, errors.Join(err, context.Cause(ctx))
	}
	return report, err
}

// stage is where the demo plays.
type stage struct {
	cfg      Config
	dir      string
	children []*child
	client   *api.Client
	shown    []api.Job // jobs that ended, kept on screen by the caller
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// start writes the site's policy and the job files, and starts both daemons.
func (s *stage) start(ctx context.Context) error {
	if err := s.write(); err != nil {
		return err
	}
	exporter, err := launch(ctx, s.path("exporter.log"), s.cfg.Exporter,
		"--socket", s.path("exporter.sock"), "--web.listen-address=")
	if err != nil {
		return err
	}
	s.children = append(s.children, exporter)
	meter := exporterapi.NewClient(s.path("exporter.sock"))
	defer meter.Close()
	if err := s.await(ctx, "the exporter", exporter, func() error { _, err := meter.Node(ctx); return err }); err != nil {
		return err
	}
	controller, err := launch(ctx, s.path("controller.log"), s.cfg.Self, "controller",
		"--config=", "--state", s.path("state"), "--socket", s.path("controller.sock"),
		"--exporter.socket", s.path("exporter.sock"), "--local.cluster", "demo", "--listen=", "--site", s.path("site.yaml"))
	if err != nil {
		return err
	}
	s.children = append(s.children, controller)
	s.client = api.NewClient(s.path("controller.sock"))
	return s.await(ctx, "the controller", controller, func() error { _, err := s.client.Jobs(ctx); return err })
}

// site lets the demo tune and give jobs more cores than they ask for. It draws no control
// group: each kind has its untuned twin.
const site = `default:
  max_mode: apply
  above_request: true
  control: 0
`

func (s *stage) write() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("make the demo's directory: %w", err)
	}
	if err := os.WriteFile(s.path("site.yaml"), []byte(site), 0o600); err != nil {
		return fmt.Errorf("write the site's policy: %w", err)
	}
	if err := os.CopyFS(s.path("jobspecs"), jobspecs.Files()); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("write the job files: %w", err)
	}
	return nil
}

// await asks until there is an answer, the child dies, or patience ends.
func (s *stage) await(ctx context.Context, what string, c *child, ask func() error) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ended:
			return fmt.Errorf("%w: %s ended: %s", errDaemon, what, c.tail())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s does not answer: %w: %s", errDaemon, what, err, c.tail())
		}
	}
}

// stop ends what still runs: a job outlives its controller, so an interrupted
// demo cancels its job first.
func (s *stage) stop(ctx context.Context) {
	if s.client != nil {
		s.cancelJobs(ctx)
		s.client.Close()
	}
	for _, v := range slices.Backward(s.children) {
		v.stop()
	}
}

func (s *stage) cancelJobs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		jobs, err := s.client.Jobs(ctx)
		if err != nil {
			return // the controller never came up, or is gone
		}
		open := 0
		for _, j := range jobs {
			if j.EndedAt.IsZero() {
				open++
				_ = s.client.Stop(ctx, j.ID) // asked again until it has ended
			}
		}
		if open == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

var errDaemon = errors.New("the demo cannot run")

// play runs the jobs one after the other, so that none disturbs another.
func (s *stage) play(ctx context.Context) (Report, error) {
	var r Report
	first := map[string]api.Job{}
	s.cfg.Say("First encounters: each kind under its user's poor settings; unknown, so it is probed.")
	for _, kind := range kinds() {
		// What a probe may cost, 5 % of a job, is more than its restarts only in a longer one.
		j, err := s.runJob(ctx, job{name: kind + "-first", file: kind, kind: kind, input: 1, env: map[string]string{"EPOCHS": "120"}})
		if err != nil {
			return r, err
		}
		first[kind] = j
		r.account(ctx, s.client, j)
	}
	s.cfg.Say("A job that asks for two cores and computes on one, which its user pays for: once tuned, once as it is.")
	large, asked, err := s.pair(ctx, "pack", 1, false)
	if err != nil {
		return r, err
	}
	s.cfg.Say("A job too short to be worth it, and one that behaves unlike all others.")
	short, err := s.runJob(ctx, job{name: "short", file: "stream", kind: "stream", input: 1, env: map[string]string{"EPOCHS": "5"}})
	if err != nil {
		return r, err
	}
	odd, err := s.runJob(ctx, job{name: "odd", file: "hash", kind: "hash", input: 1})
	if err != nil {
		return r, err
	}
	s.cfg.Say("The kinds return with another input: once tuned, once as their users asked, in alternating order.")
	for i, kind := range kinds() {
		tuned, untuned, err := s.pair(ctx, kind, 2, i%2 == 1)
		if err != nil {
			return r, err
		}
		r.account(ctx, s.client, tuned)
		r.account(ctx, s.client, untuned)
		r.Jobs = append(r.Jobs, compare(kind, first[kind], tuned, untuned))
	}
	r.finish() // the mean is of the jobs that are tuned for time
	for _, j := range []api.Job{large, asked, short, odd} {
		r.account(ctx, s.client, j)
	}
	r.Jobs = append(r.Jobs, compare("oversized", large, large, asked), alone("short", "stream", short), alone("odd", "hash", odd))
	return r, s.describe(ctx, &r)
}

// pair runs a job with the tuner and without, one after the other.
func (s *stage) pair(ctx context.Context, kind string, input int, untunedFirst bool) (tuned, untuned api.Job, err error) {
	jobs := []job{
		{name: kind, file: kind, kind: kind, input: input},
		{name: kind + "-untuned", file: kind, kind: kind, input: input, off: true},
	}
	if untunedFirst {
		slices.Reverse(jobs)
	}
	for _, j := range jobs {
		ended, err := s.runJob(ctx, j)
		if err != nil {
			return tuned, untuned, err
		}
		if j.off {
			untuned = ended
		} else {
			tuned = ended
		}
	}
	return tuned, untuned, nil
}

// runJob submits a job and follows it to its end.
func (s *stage) runJob(ctx context.Context, j job) (api.Job, error) {
	file := s.path(filepath.Join("jobspecs", "slurm", j.file+".sbatch"))
	source, err := os.ReadFile(file)
	if err != nil {
		return api.Job{}, fmt.Errorf("read the job file: %w", err)
	}
	work := s.path(filepath.Join("work", j.name))
	if err := os.MkdirAll(work, 0o755); err != nil {
		return api.Job{}, fmt.Errorf("make the job's directory: %w", err)
	}
	env := map[string]string{"PITCHPIPE_WORKLOAD": s.cfg.Workload, "INPUT": fmt.Sprint(j.input)}
	maps.Copy(env, j.env)
	sub, err := s.client.Submit(ctx, api.Submission{
		Request: "demo-" + j.name, Filename: file, Source: source, Dir: work, Env: env, Off: j.off,
	})
	if err != nil {
		return api.Job{}, fmt.Errorf("submit %s: %w", j.name, err)
	}
	for {
		now, err := s.client.Job(ctx, sub.ID)
		if err != nil {
			return api.Job{}, fmt.Errorf("ask about %s: %w", j.name, err)
		}
		now.Name = j.name
		s.cfg.Show(append(s.shown, now))
		if now.Ended {
			s.shown = append(s.shown, now)
			return now, nil
		}
		select {
		case <-ctx.Done():
			return api.Job{}, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// describe adds what the node can measure.
func (s *stage) describe(ctx context.Context, r *Report) error {
	meter := exporterapi.NewClient(s.path("exporter.sock"))
	defer meter.Close()
	node, err := meter.Node(ctx)
	if err != nil {
		return fmt.Errorf("ask about the node: %w", err)
	}
	r.Machine, r.Schema, r.EnergySource = node.MachineKind, node.Schema, node.EnergySource
	for _, src := range node.Sources {
		r.Sources = append(r.Sources, fmt.Sprintf("%s: %s %s", src.Name, src.Support, src.Reason))
	}
	return nil
}
