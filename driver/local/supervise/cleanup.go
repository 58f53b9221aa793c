package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/cgroup"
)

// remainsLimit bounds one try: its caller has more to do, and tries again.
const remainsLimit = 200 * time.Millisecond

// KillRemains ends what a dead supervisor left of its attempt: the processes of
// its leaf, or without one those of the job's session, and removes the leaf. It
// touches a leaf only where the attempt's own files say that it was made. It takes
// at most 200 ms, and can be repeated after an error.
func KillRemains(ctx context.Context, dir string) error {
	var plan Plan
	var p Process
	err := errors.Join(
		durable.ReadJSON(filepath.Join(dir, PlanFile), &plan),
		durable.ReadJSON(filepath.Join(dir, ProcessFile), &p),
	)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the job was never executed
	}
	if err != nil {
		return err
	}
	if p.Boot != bootID() {
		return nil // it ended with the machine
	}
	ctx, cancel := context.WithTimeout(ctx, remainsLimit)
	defer cancel()
	if plan.Tree.Kind == cgroup.None {
		if err := killSession(ctx, p, plan.Job); err != nil {
			return fmt.Errorf("killing what is left of %s: %w", plan.Leaf, err)
		}
		return nil
	}
	leaf := plan.Tree.Open(plan.Leaf)
	if err := leaf.Kill(ctx); err != nil {
		return err
	}
	return leaf.Remove(ctx)
}

// killSession kills the processes of the session that the process began: all of
// them while it lives, since its number names nothing else then; after that those
// that carry the job's name. Numbers are used again; both together are not. It
// returns only when it knows of all of them.
//
// An environment that is empty is looked at again until ctx ends: the process may
// be about to execute another program. One that was empty all that time, from one
// look to the next, stays so (env -i), and then nothing says that the process is
// the job's: its session's number may long be another's. It is taken for foreign
// and left alone, since to kill a stranger is worse than to leave an orphan, and
// to wait for it would keep the job open for as long as it runs.
func killSession(ctx context.Context, leader Process, job string) error {
	type name struct {
		pid   int
		start uint64
	}
	nameless := map[name]bool{} // at the last look
	for {
		left, before := 0, nameless
		nameless = map[name]bool{}
		lasting := true
		table := processes()
		first, lives := table[leader.PID]
		ours := lives && first.Start == leader.Start
		for _, q := range table {
			if q.Session != leader.PID || q.Ended {
				continue
			}
			belongs, known := belongsTo(q, job)
			if !ours && !belongs {
				if !known {
					n := name{q.PID, q.Start}
					nameless[n], lasting = true, lasting && before[n]
				}
				continue
			}
			left++
			if err := cgroup.Signal(q.PID, unix.SIGKILL, q.Lives); err != nil {
				return err
			}
		}
		if left == 0 && len(nameless) == 0 {
			return nil
		}
		if err := driver.Pause(ctx, lookEvery); err != nil {
			if left == 0 && lasting && errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}
	}
}
