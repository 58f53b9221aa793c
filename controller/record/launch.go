package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/local/cgroup"
	"pitchpipe/exporter/api"
)

// Cgroup is where one run is.
type Cgroup interface {
	// Add moves a process in; what it starts is in from the beginning.
	Add(pid int) error
	// Kill ends what is left in it.
	Kill(ctx context.Context) error
	Remove(ctx context.Context) error
}

// notice is how long a run is held back until the meter has noticed its cgroup.
const notice = 2 * time.Second

// launch starts the command of a run, which waits before it runs its program until it is
// bound to its CPUs, in its cgroup, and known to the meter. Its end empties and removes the
// cgroup, once. The error is about the command.
func (r *Run) launch(ctx context.Context, cmd *exec.Cmd, id string, attempt int, cfg Config) (before Load, end func(), err error) {
	end = func() {}
	if cmd.Err != nil {
		return before, end, cmd.Err
	}
	var cpus []int // that the run is bound to; none: it is not bound
	if n, err := strconv.Atoi(r.Cell.Knobs[tuning.Cores]); err == nil {
		cpus = cfg.CPUs[:min(n, len(cfg.CPUs))]
	}
	var leaf Cgroup
	lacks := func(err error) { r.Missing = append(r.Missing, "a cgroup for each run: "+err.Error()) }
	if cfg.Cgroup != nil {
		made, err := cfg.Cgroup(ctx, id+"."+strconv.Itoa(attempt), cpus)
		if err != nil { // what may be in it is not ours
			lacks(err)
		} else {
			leaf, end = made, sync.OnceFunc(func() { vacate(ctx, made) })
		}
	}
	gate, err := hold(cmd)
	if err != nil {
		return before, end, err
	}
	defer gate.Close() //nolint:errcheck // the line was written
	pid := cmd.Process.Pid
	if leaf != nil {
		if err := leaf.Add(pid); err != nil {
			lacks(err)
		} else if cfg.Meter != nil {
			_, err := ask(ctx, notice, cfg.Meter, id, attempt, func(_ api.Window, err error) bool { return !errors.Is(err, api.ErrNotFound) })
			r.Watched = err == nil
		}
	}
	err = cgroup.Bind(pid, cpus)
	if cfg.Load != nil {
		before, _ = cfg.Load() // where it cannot be read it has no cores
	}
	r.Start = time.Now()
	if err == nil {
		_, err = gate.WriteString("go\n")
	}
	if err != nil {
		return before, end, errors.Join(fmt.Errorf("let the command go: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	return before, end, nil
}

// vacate empties and removes a cgroup. What an interruption leaves behind would run on.
func vacate(ctx context.Context, l Cgroup) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = errors.Join(l.Kill(ctx), l.Remove(ctx)) // one that cannot be removed is empty: it measures nothing
}

// hold starts a command in front of its program, until a line is written to the file: a
// shell reads it and becomes the program.
func hold(cmd *exec.Cmd) (*os.File, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("find a shell: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer r.Close() //nolint:errcheck // the command has its own
	cmd.Args = append([]string{"sh", "-c", `read -r word <&3 && exec "$@" 3<&-`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	cmd.ExtraFiles = []*os.File{r}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}
