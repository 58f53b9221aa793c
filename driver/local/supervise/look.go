package supervise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/cgroup"
)

// look takes one look at everything that may end or signal the job.
func (a *attempt) look(ctx context.Context, now time.Time) {
	// 1. What the scheduler asks for.
	var stop Stop
	if a.read(StopFile, &stop) && (a.ending == "" || a.ending == Stopped) {
		a.stop = stop.Reason // a later request may say more: cancelled after saved
		a.end(Stopped, now)
	}
	var sig Signal
	if a.executed && a.ending == "" && a.read(SignalFile, &sig) && sig.ID != a.sent {
		a.sent = sig.ID
		a.log.Info("asking the job to save", "signal", sig.Signal, "intent", sig.ID)
		a.kill(-a.job.Process.Pid, unix.SignalNum(sig.Signal))
	}
	// 2. The limits.
	if a.plan.TimeLimit > 0 && now.Sub(a.began) >= a.plan.TimeLimit {
		a.end(TimeUp, now)
	}
	if a.overMemory(now) {
		a.end(Memory, now)
	}
	if a.plan.Tree.Memory && now.Sub(a.measured) >= measureEvery {
		a.measured, a.cache = now, max(a.cache, a.leaf.Cache())
	}
	// 3. The end of politeness.
	if a.ending != "" && now.After(a.killAt) {
		if err := a.signalAll(unix.SIGKILL); err != nil {
			a.log.Error("killing the job", "error", err)
		}
	}
	if a.plan.Tree.Kind == cgroup.None {
		a.reapOrphans()
	}
	if ctx.Err() != nil {
		a.log.Warn("the context of a supervisor ended", "error", ctx.Err())
	}
}

// read reads a file that the scheduler may have written.
func (a *attempt) read(name string, v any) bool {
	err := durable.ReadJSON(filepath.Join(a.dir, name), v)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.log.Error("reading a request", "error", err)
	}
	return err == nil
}

// end begins to end the job. The first reason is the one that counts. Nothing
// polite helps against a lack of memory. What is discarded is killed too, its main
// process first: a job that ends well after SIGTERM would look finished, and so would a
// script whose command was killed before it.
func (a *attempt) end(why Reason, now time.Time) {
	if a.ending != "" {
		return
	}
	a.ending, a.killAt = why, now.Add(termGrace)
	a.log.Info("ending the job", "reason", why)
	sig := unix.SIGTERM
	if why == Memory || a.stop == StopDiscarded {
		a.killAt, sig = now, unix.SIGKILL
		a.kill(a.job.Process.Pid, sig)
	}
	if err := a.signalAll(sig); err != nil {
		a.log.Error("ending the job", "error", err)
	}
}

// overMemory reports whether the job went over its limit: the kernel says so, or
// where no cgroup limits memory, the sum of what its processes hold.
func (a *attempt) overMemory(now time.Time) bool {
	if a.plan.MemoryBytes <= 0 {
		return false
	}
	if a.plan.Tree.Memory {
		return a.leaf.OOMKills() > 0
	}
	if now.Sub(a.measured) < measureEvery {
		return false
	}
	a.measured = now
	var sum int64
	table := processes()
	for _, pid := range a.pids(table) {
		sum += table[pid].RSS
	}
	return sum > a.plan.MemoryBytes
}

// peak is the most memory that the job held without page cache, as far as the kernel counts it; 0 = not known. The most
// cache that was seen may be from another moment: then the job held more.
func (a *attempt) peak() int64 {
	return max(0, int64(a.leaf.Peak())-int64(max(a.cache, a.leaf.Cache())))
}

// pids lists the job's processes: those of its leaf, or without one its
// descendants, the listener left out.
func (a *attempt) pids(table map[int]cgroup.Process) []int {
	pids, err := a.leaf.Pids()
	if err != nil {
		a.log.Error("processes of the job", "error", err)
	}
	if a.plan.Tree.Kind == cgroup.None {
		pids = descendants(table, os.Getpid())
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		p, ok := table[pid]
		return !ok || p.Ended || pid == a.listener.pid()
	})
}

// signalAll signals the job's process group and every other process of it.
func (a *attempt) signalAll(sig unix.Signal) error {
	a.kill(-a.job.Process.Pid, sig)
	var all error
	table := processes()
	for _, pid := range a.pids(table) {
		if table[pid].Session == a.job.Process.Pid && sig != unix.SIGKILL {
			continue // its group has it already
		}
		all = errors.Join(all, cgroup.Signal(pid, sig, table[pid].Lives))
	}
	return all
}

// kill signals the job's main process, or its group where pid is negative. No other has
// the number: the process is not waited for before the last look.
func (a *attempt) kill(pid int, sig unix.Signal) {
	if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		a.log.Error("signalling the job", "signal", unix.SignalName(sig), "error", err)
	}
}

// killJob kills until nothing of the job is left.
func (a *attempt) killJob(ctx context.Context) error {
	for {
		table := processes()
		left := a.pids(table)
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			if err := cgroup.Signal(pid, unix.SIGKILL, table[pid].Lives); err != nil {
				return err
			}
		}
		if err := driver.Pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// reapOrphans buries what the job left to its subreaper.
func (a *attempt) reapOrphans() {
	for _, p := range processes() {
		if !p.Ended || p.Parent != os.Getpid() || p.PID == a.job.Process.Pid || p.PID == a.listener.pid() {
			continue
		}
		if _, err := unix.Wait4(p.PID, nil, unix.WNOHANG, nil); err != nil && !errors.Is(err, unix.ECHILD) {
			a.log.Warn("reaping an orphan", "error", err)
		}
	}
}
