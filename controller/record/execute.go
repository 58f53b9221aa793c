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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

const (
	// mostLine is the longest line that is read for progress.
	mostLine = 1 << 20
	// mercy is how long a command that is stopped, and the meter that looks at it, get.
	mercy = 10 * time.Second
)

// execute makes one run. An error means that it was not made: the recording ends.
func execute(ctx context.Context, p Plan, c Cell, cfg Config) (Run, error) {
	if err := ctx.Err(); err != nil {
		return Run{}, err
	}
	limit, err := p.timeout()
	if err != nil {
		return Run{}, err
	}
	matcher, err := p.matcher()
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
	cmd := command(within, p.workload(c), c, dir, cfg.Environ)
	var said tail
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Run{}, fmt.Errorf("run %s: %w", c.ID, err)
	}
	r := Run{Cell: c}
	bound, err := startOn(cmd, cpusFor(c, cfg.CPUs))
	r.Start = bound
	if err != nil {
		r.Failed = err.Error()
		return r, nil
	}
	r.Epochs = watch(out, matcher, r.Start)
	err = cmd.Wait()
	r.Seconds = time.Since(r.Start).Seconds()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whom it left behind would disturb the next run
	switch {
	case ctx.Err() != nil:
		return Run{}, ctx.Err()
	case within.Err() != nil:
		r.Failed = "it ran past " + limit.String()
	case err != nil:
		r.Failed = strings.TrimSpace(err.Error() + ": " + said.String())
	}
	if len(r.Epochs) == 0 {
		r.Missing = append(r.Missing, "epochs: no line of "+c.Workload+"'s output tells progress")
	}
	r.measure(ctx, cfg.Meter)
	return r, nil
}

func (p Plan) workload(c Cell) Workload {
	return p.Workloads[slices.IndexFunc(p.Workloads, func(w Workload) bool { return w.Name == c.Workload })]
}

func command(ctx context.Context, w Workload, c Cell, dir string, environ []string) *exec.Cmd {
	args := make([]string, len(w.Command))
	for i, a := range w.Command {
		args[i] = c.fill(a, dir)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // running the user's command is what this is for
	cmd.Dir = dir
	cmd.Env = slices.Clone(environ)
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		cmd.Env = append(cmd.Env, name+"="+c.fill(w.Env[name], dir))
	}
	cmd.Env = append(cmd.Env, "PITCHPIPE_JOB_ID="+c.ID, "PITCHPIPE_ATTEMPT=1")
	// A group of its own, so that its children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = mercy
	return cmd
}

// cpusFor are the CPUs that a run is bound to; none: it is not bound.
func cpusFor(c Cell, cpus []int) []int {
	n, err := strconv.Atoi(c.Knobs[tuning.Cores])
	if err != nil {
		return nil
	}
	return cpus[:min(n, len(cpus))]
}

// startOn starts a command bound to CPUs. A process inherits them from
// the thread that starts it, which is a thread of its own that ends with its goroutine.
func startOn(cmd *exec.Cmd, cpus []int) (time.Time, error) {
	type started struct {
		at  time.Time
		err error
	}
	done := make(chan started, 1)
	go func() {
		if len(cpus) > 0 {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			var set unix.CPUSet
			for _, cpu := range cpus {
				set.Set(cpu)
			}
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				done <- started{err: fmt.Errorf("bind it to CPUs %v: %w", cpus, err)}
				return
			}
		}
		at := time.Now()
		done <- started{at, cmd.Start()}
	}()
	s := <-done
	return s.at, s.err
}

// watch reads the output to its end and notes the epochs.
func watch(out io.Reader, m *progress.Matcher, start time.Time) []Epoch {
	var epochs []Epoch
	lines := bufio.NewReaderSize(out, mostLine)
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
func (r *Run) measure(ctx context.Context, m Meter) {
	if m == nil {
		r.Missing = append(r.Missing, "counters and joules: there is no exporter")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mercy)
	defer cancel()
	w, err := whole(ctx, m, r.Cell.ID)
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

// whole asks until the meter says that the run is over.
func whole(ctx context.Context, m Meter, id string) (api.Window, error) {
	var last api.Window
	for {
		w, err := m.Window(ctx, id, 1, 0)
		if err == nil {
			last = w
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || err == nil && w.Job.Ended {
			return last, err
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(100 * time.Millisecond):
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
