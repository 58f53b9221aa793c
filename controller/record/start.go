package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
)

// Rooms gives each run a room of its own on the machine, such as a cgroup, by which the
// meter knows what belongs to it.
type Rooms interface {
	// Open makes a room for processes that may use these CPUs; none: all.
	Open(ctx context.Context, name string, cpus []int) (Room, error)
}

// Room is where one run is.
type Room interface {
	// Add moves a process in; what it starts is in from the beginning.
	Add(pid int) error
	// Close ends whatever is left in it, and removes it.
	Close(ctx context.Context) error
}

// notice is how long a run is held back until the meter has noticed its room.
const notice = 2 * time.Second

// launched is a command that runs.
type launched struct {
	at      time.Time
	load    Load // of the machine then
	watched bool // the meter knew it from its first moment on
	room    Room // nil = none
	lacks   string
}

// launch starts a command bound to CPUs, in a room where there are any. It waits in
// front of its own program until the meter knows it. The error is about the command.
func launch(ctx context.Context, cmd *exec.Cmd, id string, attempt int, cpus []int, cfg Config) (launched, error) {
	out := launched{}
	if cfg.Rooms == nil {
		out.begin(cfg)
		return out, startOn(cmd, cpus)
	}
	if cmd.Err != nil {
		return out, cmd.Err
	}
	room, err := cfg.Rooms.Open(ctx, id+"."+strconv.Itoa(attempt), cpus)
	if err != nil { // whoever may be in it is not ours
		out.lacks = "a cgroup for each run: " + err.Error()
		out.begin(cfg)
		return out, startOn(cmd, cpus)
	}
	out.room = room
	word, err := hold(cmd)
	if err != nil {
		return out, err
	}
	defer word.Close() //nolint:errcheck // what was to be said was said
	if err := startOn(cmd, cpus); err != nil {
		return out, err
	}
	if err := out.room.Add(cmd.Process.Pid); err != nil {
		out.lacks = "a cgroup for each run: " + err.Error()
	} else if cfg.Meter != nil {
		out.watched = noticed(ctx, cfg.Meter, id, attempt)
	}
	out.begin(cfg)
	if _, err := word.WriteString("go\n"); err != nil {
		return out, errors.Join(fmt.Errorf("let the command go: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	return out, nil
}

// begin is the moment before the command runs.
func (l *launched) begin(cfg Config) {
	if cfg.Load != nil {
		l.load, _ = cfg.Load() // where it cannot be read it has no cores
	}
	l.at = time.Now()
}

// end empties and removes the room, once.
func (l *launched) end(ctx context.Context) {
	if l.room == nil {
		return
	}
	// What an interruption leaves behind would run on.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mercy)
	defer cancel()
	_ = l.room.Close(ctx) // one that cannot be removed is empty: it measures nothing
	l.room = nil
}

// hold has the command wait in front of its program until a line is written to the
// file: a shell reads it and becomes the program.
func hold(cmd *exec.Cmd) (*os.File, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("find a shell: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	cmd.Args = append([]string{"sh", "-c", `read -r word <&3 && exec "$@" 3<&-`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	cmd.ExtraFiles = []*os.File{r}
	return w, nil
}

// noticed waits until the meter knows a job.
func noticed(ctx context.Context, m Meter, id string, attempt int) bool {
	ctx, cancel := context.WithTimeout(ctx, notice)
	defer cancel()
	for {
		if _, err := m.Window(ctx, id, attempt, 0); !errors.Is(err, api.ErrNotFound) {
			return err == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startOn starts a command bound to CPUs. A process inherits them from the thread that
// starts it, which is a thread of its own that ends with its goroutine.
func startOn(cmd *exec.Cmd, cpus []int) error {
	done := make(chan error, 1)
	go func() {
		if len(cpus) > 0 {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			var set unix.CPUSet
			for _, cpu := range cpus {
				set.Set(cpu)
			}
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				done <- fmt.Errorf("bind it to CPUs %v: %w", cpus, err)
				return
			}
		}
		done <- cmd.Start()
	}()
	err := <-done
	for _, f := range cmd.ExtraFiles {
		err = errors.Join(err, f.Close())
	}
	return err
}
