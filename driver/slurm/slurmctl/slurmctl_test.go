package slurmctl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
)

// slurm answers after a time, unless it is cut off before.
type slurm struct {
	takes time.Duration
	fail  map[string]error // by the last argument
	calls []string
}

func (s *slurm) Run(ctx context.Context, c command.Call) (command.Output, error) {
	s.calls = append(s.calls, c.String())
	select {
	case <-ctx.Done():
		return command.Output{}, fmt.Errorf("%s: cut off: %w: %w", c.Name, driver.ErrUnknown, ctx.Err())
	case <-time.After(s.takes):
	}
	for word, err := range s.fail {
		if slices.Contains(c.Args, word) {
			return command.Output{}, err
		}
	}
	return command.Output{Stdout: []byte("script of " + c.Args[len(c.Args)-2])}, nil
}

func TestASignalToATaskIsSentOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, job string
		takes     time.Duration
		patience  time.Duration
		want      error
		most      time.Duration
	}{
		{"a job's is waited for", "7", 30 * time.Second, time.Minute, nil, 30 * time.Second},
		{"a job's that is cut off by its caller is unknown", "7", time.Minute, time.Second, driver.ErrUnknown, time.Second},
		{"a task's that is answered is done", "7_2", time.Second, time.Minute, nil, time.Second},
		{"a task's that would be repeated is cut off before, and was sent", "7_2", 30 * time.Second, time.Minute, nil, 4 * time.Second},
		{"a task's that is cut off by its caller is unknown", "7_2", time.Minute, time.Second, driver.ErrUnknown, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slurm{takes: c.takes}
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				began := time.Now()
				err := slurmctl.Commands{Runner: s}.Signal(ctx, c.job, "SIGUSR1")
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || time.Since(began) != c.most {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(began), c.want, c.most)
				}
				if want := []string{"scancel --full --signal=USR1 " + c.job}; !slices.Equal(s.calls, want) {
					t.Errorf("calls %q, want %q", s.calls, want)
				}
			})
		})
	}
}

func TestASignalThatSlurmRefusesIsAnError(t *testing.T) {
	t.Parallel()
	s := &slurm{fail: map[string]error{"7_2": driver.ErrNotFound}}
	if err := (slurmctl.Commands{Runner: s}).Signal(t.Context(), "7_2", "SIGUSR1"); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("%v, want %v", err, driver.ErrNotFound)
	}
}

func TestTheScriptOfATaskIsFoundByEitherOfItsNames(t *testing.T) {
	t.Parallel()
	gone := map[string]error{"7_2": driver.ErrNotFound}
	for _, c := range []struct {
		name string
		fail map[string]error
		want string
		err  error
	}{
		{"by its array", nil, "script of 7_2", nil},
		{"by its number where the array is forgotten", gone, "script of 9", nil},
		{"by none", map[string]error{"7_2": driver.ErrNotFound, "9": driver.ErrInvalid}, "", driver.ErrNotFound},
		{"nor by its number where slurmctld does not answer", map[string]error{"7_2": driver.ErrTransient}, "", driver.ErrTransient},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := slurmctl.ScriptOf(t.Context(), slurmctl.Commands{Runner: &slurm{fail: c.fail}}, "7_2", "9")
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestWhatIsUpdated(t *testing.T) {
	t.Parallel()
	yes, no, cores, wait, limit := true, false, 3, 90*time.Second, 2*time.Hour
	for _, c := range []struct {
		name string
		u    slurmctl.Update
		want string
	}{
		{"cores are set in three places", slurmctl.Update{Cores: &cores}, "NumCPUs=3 CpusPerTask=3 MinCPUsNode=3"},
		{"memory of a node", slurmctl.Update{Memory: &slurmctl.Memory{Bytes: 200 << 20}}, "MinMemoryNode=200"},
		{"memory of a CPU", slurmctl.Update{Memory: &slurmctl.Memory{Bytes: 200 << 20, PerCPU: true}}, "MinMemoryCPU=200"},
		{"a time limit in minutes", slurmctl.Update{TimeLimit: &limit}, "TimeLimit=120"},
		{"no time limit", slurmctl.Update{TimeLimit: new(time.Duration)}, "TimeLimit=UNLIMITED"},
		{"a start later", slurmctl.Update{Start: &wait}, "StartTime=now+90"},
		{"a start now", slurmctl.Update{Start: new(time.Duration)}, "StartTime=now"},
		{"restarts as they are allowed", slurmctl.Update{Requeue: &yes}, "Requeue=1"},
		{"restarts as they are forbidden", slurmctl.Update{Requeue: &no}, "Requeue=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(c.u.Args(), " "); got != c.want || c.u.Empty() {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if !(slurmctl.Update{}).Empty() {
		t.Error("an update of nothing is not empty")
	}
}
