package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/jobspecs"
)

func (a *app) demo() *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use: "demo", Short: "Tune real jobs on this machine and compare the results",
		Long: "Starts an exporter and a controller in a temporary directory, runs tunable jobs whose users asked\n" +
			"for poor settings, and compares tuned with untuned. It takes about 12 minutes and two cores.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			dir := keep
			if keep == "" {
				if dir, err = os.MkdirTemp("", "pitchpipe-demo-"); err != nil {
					return fmt.Errorf("make a directory: %w", err)
				}
				defer func() { _ = os.RemoveAll(dir) }() // leftovers are in the temporary folder
			} else if dir, err = absolute(keep); err != nil {
				return err
			}
			people := a
			if a.json { // the object has the output to itself; people watch the errors' stream
				people = a.beside()
			}
			s := &stage{people: people, screen: people.screen(), began: time.Now(), self: self, dir: dir}
			defer s.stop(context.WithoutCancel(ctx))
			if err := s.start(ctx); err != nil {
				return err
			}
			r, err := s.play(ctx)
			if err != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			people.printf("\n%s", r.text())
			if a.json {
				if err := a.printJSON(r); err != nil {
					return err
				}
			}
			if r.Lost+r.Duplicated > 0 {
				return errors.Join(errJobFailed, fmt.Errorf("lost %d, duplicated %d", r.Lost, r.Duplicated))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "keep state, logs and outputs in this directory")
	return cmd
}

// stage is where the demo plays: its own exporter and controller.
type stage struct {
	people    *app
	screen    *screen
	began     time.Time
	self, dir string
	children  []*child
	client    *api.Client
	meter     *exporterapi.Client
}

type demoJob struct {
	name  string // of the report
	file  string // job file in jobspecs/slurm
	input int
	env   map[string]string
	off   bool
}

// demoKinds are the kinds that are tuned for time, in the order of the demo.
func demoKinds() []string { return []string{"dense", "jacobi", "bfs", "kmeans", "sort"} }

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) say(text string) {
	s.people.printf("\n[%3.0f s] %s\n", time.Since(s.began).Seconds(), text)
	s.screen.close()
}

// demoSite lets the demo tune and give jobs more cores than they ask for. It draws no control
// group: each kind has its untuned twin.
const demoSite = `default:
  max_mode: apply
  above_request: true
  control: 0
`

func (s *stage) start(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("make the demo's directory: %w", err)
	}
	if err := os.WriteFile(s.path("site.yaml"), []byte(demoSite), 0o600); err != nil {
		return fmt.Errorf("write the site's policy: %w", err)
	}
	if err := os.CopyFS(s.path("jobspecs"), jobspecs.Files()); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("write the job files: %w", err)
	}
	s.meter, s.client = exporterapi.NewClient(s.path("exporter.sock")), api.NewClient(s.path("controller.sock"))
	exporter, err := launch(ctx, s.path("exporter.log"), func() error { _, err := s.meter.Node(ctx); return err },
		beside(s.self, "pitchpipe-exporter"), "--socket", s.path("exporter.sock"), "--web.listen-address=")
	if err != nil {
		return err
	}
	s.children = append(s.children, exporter)
	controller, err := launch(ctx, s.path("controller.log"), func() error { _, err := s.client.Jobs(ctx); return err }, s.self, "controller",
		"--config=", "--state", s.path("state"), "--socket", s.path("controller.sock"),
		"--exporter.socket", s.path("exporter.sock"), "--local.cluster", "demo", "--listen=", "--site", s.path("site.yaml"))
	if err == nil {
		s.children = append(s.children, controller)
	}
	return err
}

// stop ends what still runs: a job outlives its controller, so an interrupted demo cancels its
// job first.
func (s *stage) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for len(s.children) == 2 && ctx.Err() == nil && s.cancelJobs(ctx) > 0 {
		time.Sleep(200 * time.Millisecond)
	}
	for _, v := range slices.Backward(s.children) {
		v.stop()
	}
	if s.client != nil {
		s.client.Close()
		s.meter.Close()
	}
}

func (s *stage) cancelJobs(ctx context.Context) (open int) {
	jobs, _ := s.client.Jobs(ctx) // none where the controller is gone
	for _, j := range jobs {
		if j.EndedAt.IsZero() {
			open++
			_ = s.client.Stop(ctx, j.ID) // asked again until it has ended
		}
	}
	return open
}

// play runs the jobs one after the other, so that none disturbs another.
func (s *stage) play(ctx context.Context) (r demoReport, err error) {
	var jobs []api.Job
	say := func(text string) {
		if err == nil {
			s.say(text)
		}
	}
	run := func(j demoJob) (out api.Job) {
		if err == nil {
			out, err = s.run(ctx, j)
			jobs = append(jobs, out)
		}
		return out
	}
	// A pair runs with the tuner and without, one after the other.
	pair := func(kind string, input int, untunedFirst bool) (tuned, untuned api.Job) {
		with := demoJob{name: kind, file: kind, input: input}
		without := demoJob{name: kind + "-untuned", file: kind, input: input, off: true}
		if untunedFirst {
			untuned = run(without)
			return run(with), untuned
		}
		return run(with), run(without)
	}
	first := map[string]api.Job{}
	say("First encounters: each kind under its user's poor settings; unknown, so it is probed.")
	for _, kind := range demoKinds() {
		// What a probe may cost, 5 % of a job, is more than its restarts only in a longer one.
		first[kind] = run(demoJob{name: kind + "-first", file: kind, input: 1, env: map[string]string{"EPOCHS": "120"}})
	}
	say("A job that asks for two cores and computes on one, which its user pays for: once tuned, once as it is.")
	large, asked := pair("pack", 1, false)
	say("A job too short to be worth it, and one that behaves unlike all others.")
	short := run(demoJob{name: "short", file: "stream", input: 1, env: map[string]string{"EPOCHS": "5"}})
	odd := run(demoJob{name: "odd", file: "hash", input: 1})
	say("The kinds return with another input: once tuned, once as their users asked, in alternating order.")
	for i, kind := range demoKinds() {
		tuned, untuned := pair(kind, 2, i%2 == 1)
		r.Jobs = append(r.Jobs, demoRow{kind, first[kind], &tuned, &untuned})
	}
	if err != nil {
		return r, err
	}
	r.finish() // the mean is of the jobs that are tuned for time
	r.Jobs = append(r.Jobs, demoRow{"oversized", large, &large, &asked}, demoRow{Name: "short", First: short}, demoRow{Name: "odd", First: odd})
	for _, j := range jobs {
		r.account(ctx, s.client, j)
	}
	node, err := s.meter.Node(ctx)
	if err != nil {
		return r, fmt.Errorf("ask about the node: %w", err)
	}
	r.Machine, r.Schema, r.EnergySource = node.MachineKind, node.Schema, node.EnergySource
	r.Sources = tuning.Each(node.Sources, func(s exporterapi.Source) string { return fmt.Sprintf("%s: %s %s", s.Name, s.Support, s.Reason) })
	return r, nil
}

func (s *stage) run(ctx context.Context, j demoJob) (api.Job, error) {
	work := s.path(filepath.Join("work", j.name))
	if err := os.MkdirAll(work, 0o755); err != nil {
		return api.Job{}, fmt.Errorf("make the job's directory: %w", err)
	}
	env := driver.Merge(map[string]string{"PITCHPIPE_WORKLOAD": beside(s.self, "workload"), "INPUT": fmt.Sprint(j.input)}, j.env)
	job, err := s.people.submission(ctx, s.path(filepath.Join("jobspecs", "slurm", j.file+".sbatch")), work, nil, env)
	if err != nil {
		return api.Job{}, err
	}
	job.Request, job.Off = fmt.Sprintf("demo-%s-%d", j.name, s.began.UnixNano()), j.off // those of an earlier demo in this folder are over
	now, err := s.client.Submit(ctx, job)
	if err != nil {
		return api.Job{}, fmt.Errorf("submit %s: %w", j.name, err)
	}
	defer s.screen.close()
	for {
		if now, err = s.client.Job(ctx, now.ID); err != nil {
			return api.Job{}, fmt.Errorf("ask about %s: %w", j.name, err)
		}
		now.Name = j.name
		s.screen.update([]api.Job{now})
		if now.Ended {
			return now, nil
		}
		if driver.Pause(ctx, 200*time.Millisecond) != nil {
			return api.Job{}, ctx.Err()
		}
	}
}
