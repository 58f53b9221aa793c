package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

const (
	// patience is how long the meter that looks at a run, and the removal of its cgroup, get.
	patience = 10 * time.Second
	// linger is how long what a command left behind may still write.
	linger = time.Second
)

// execute makes one run, again where others disturbed it and the plan has retries; then
// the least disturbed is kept, whatever it took. An error means that it was not made: the
// recording ends.
func execute(ctx context.Context, p Plan, c Cell, cfg Config) (Run, error) {
	var best Run
	for attempt := 1; ; attempt++ {
		r, err := try(ctx, p, c, attempt, cfg)
		if err != nil {
			return Run{}, err
		}
		if attempt == 1 || r.Failed == "" && r.Neighbours.disturbance() < best.Neighbours.disturbance() {
			best = r
		}
		best.Attempts = attempt
		if r.Failed != "" || r.Neighbours == nil || r.Neighbours.Disturbed == "" || attempt > p.Retries {
			return best, nil
		}
	}
}

func try(ctx context.Context, p Plan, c Cell, attempt int, cfg Config) (Run, error) {
	if err := ctx.Err(); err != nil {
		return Run{}, err
	}
	limit, matcher, err := p.limits()
	if err != nil {
		return Run{}, err
	}
	dir, err := os.MkdirTemp("", "pitchpipe-record-*")
	if err != nil {
		return Run{}, fmt.Errorf("make a scratch folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := command(within, p.workload(c), c, cfg.job(c), attempt, dir, cfg.Environ)
	var said tail
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, &said
	r := Run{Cell: c}
	before, end, err := r.launch(within, cmd, cfg.job(c), attempt, cfg)
	defer end()
	if err != nil {
		r.Failed = err.Error()
		return r, nil
	}
	epochs := make(chan []Epoch, 1)
	go func() { epochs <- watch(out, matcher, r.Start) }()
	ended, err := cmd.Process.Wait()
	r.Seconds = time.Since(r.Start).Seconds()
	r.look(before, ended, cfg)
	_ = errors.Join(cmd.Wait(), in.Close()) // until the output ends too; how the command ended is known
	r.Epochs = <-epochs
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind would disturb the next run
	switch {
	case ctx.Err() != nil:
		return Run{}, ctx.Err()
	case err == nil && ended.Success():
	case within.Err() != nil:
		r.Failed = "it ran past " + limit.String()
	default:
		r.Failed = strings.TrimSpace(ended.String() + ": " + said.String())
	}
	if len(r.Epochs) == 0 {
		r.Missing = append(r.Missing, "epochs: no line of "+c.Workload+"'s output reports progress")
	}
	end() // the meter sees that it is over
	r.measure(ctx, cfg.job(c), attempt, cfg.Meter)
	return r, nil
}

// look notes what else went on meanwhile.
func (r *Run) look(before Load, ended *os.ProcessState, cfg Config) {
	if ended == nil || cfg.Load == nil {
		return
	}
	r.CPUSeconds = (ended.UserTime() + ended.SystemTime()).Seconds()
	after, err := cfg.Load()
	if err != nil || before.Cores == 0 || !(r.Seconds > 0) {
		r.Missing = append(r.Missing, "what others did meanwhile: the machine does not tell its load")
		return
	}
	r.Neighbours = neighbours(before, after, r.Seconds, r.CPUSeconds, r.Cell.settings())
}

func (p Plan) workload(c Cell) Workload {
	return p.Workloads[slices.IndexFunc(p.Workloads, func(w Workload) bool { return w.Name == c.Workload })]
}

func command(ctx context.Context, w Workload, c Cell, job string, attempt int, dir string, environ []string) *exec.Cmd {
	args := c.arguments(w.Command, dir)
	if strings.Contains(args[0], "/") { // a program of the user's folder, although it runs in another
		args[0], _ = filepath.Abs(args[0])
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // running the user's command is what this is for
	cmd.Dir = dir
	cmd.Env = slices.Clone(environ)
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		cmd.Env = append(cmd.Env, name+"="+c.fill(w.Env[name], dir))
	}
	cmd.Env = append(cmd.Env, "PITCHPIPE_JOB_ID="+job, "PITCHPIPE_ATTEMPT="+strconv.Itoa(attempt))
	// Its own group, so that its children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = linger
	return cmd
}

func watch(out io.Reader, m *progress.Matcher, start time.Time) []Epoch {
	var epochs []Epoch
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if report, ok := m.Match(strings.TrimRight(line, "\r\n")); ok {
			epochs = append(epochs, Epoch{
				Number: report.Epoch, Seconds: time.Since(start).Seconds(), Loss: report.Loss, Quality: report.Quality,
			})
		}
		if err != nil {
			return epochs
		}
	}
}

// measure fetches what the meter counted, once it has seen the end.
func (r *Run) measure(ctx context.Context, job string, attempt int, m Meter) {
	if m == nil {
		r.Missing = append(r.Missing, "counters and joules: there is no exporter")
		return
	}
	w, err := ask(ctx, patience, m, job, attempt, func(w api.Window, err error) bool {
		return err != nil && !errors.Is(err, context.DeadlineExceeded) || err == nil && w.Job.Ended
	})
	if err != nil && len(w.Samples) == 0 {
		r.Missing = append(r.Missing, "counters and joules: "+reason(err))
		return
	}
	r.Source, r.Samples = w.Source, w.Samples
	for _, s := range w.Job.Absent {
		r.Missing = append(r.Missing, s.Name+": "+s.Reason)
	}
	switch w.Source {
	case "":
		r.Missing = append(r.Missing, "joules: there is no source of energy")
	case tuning.Modelled:
		r.Missing = append(r.Missing, "joules: they are modelled, which is no measurement")
	}
}

// reason is short, so that runs that lack the same thing say the same.
func reason(err error) string {
	switch {
	case errors.Is(err, api.ErrNotFound):
		return "the exporter did not see a run: it was too short, or its environment is not believed"
	case errors.Is(err, api.ErrUnavailable):
		return "the exporter cannot be reached"
	}
	return err.Error()
}

// ask asks the meter about a run until an answer is enough, and returns the last window.
func ask(ctx context.Context, patience time.Duration, m Meter, id string, attempt int, enough func(api.Window, error) bool) (api.Window, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last api.Window
	for {
		w, err := m.Window(ctx, id, attempt, 0)
		if err == nil {
			last = w
		}
		if enough(w, err) {
			return last, err
		}
		if err := driver.Pause(ctx, 20*time.Millisecond); err != nil {
			return last, err
		}
	}
}

// tail keeps the last of what a command says on its standard error.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-300):]
	return len(b), nil
}

func (t *tail) String() string { return string(t.text) }
