package benchslurm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/measure"
	"pitchpipe/test/slurmcluster"
)

// subject are the processes that are measured.
type subject struct {
	slurmctld int
	ours      []int // the controller and the broker
}

// over measures for a while.
func (s subject) over(ctx context.Context, d time.Duration) (Cost, error) {
	begin := time.Now()
	all1, children1, err := s.spent()
	if err != nil {
		return Cost{}, err
	}
	ctld1, err := measure.Used(s.slurmctld)
	if err != nil {
		return Cost{}, err
	}
	if err := measure.Pause(ctx, d); err != nil {
		return Cost{}, err
	}
	all2, children2, err := s.spent()
	if err != nil {
		return Cost{}, err
	}
	ctld2, err := measure.Used(s.slurmctld)
	return Cost{
		Over: time.Since(begin), Controller: all2 - all1, Children: children2 - children1, Slurmctld: ctld2.CPU - ctld1.CPU,
	}, err
}

// spent is the CPU of our processes so far, and what of it is their children's.
func (s subject) spent() (all, children time.Duration, err error) {
	for _, pid := range s.ours {
		u, err := measure.Used(pid)
		if err != nil {
			return 0, 0, err
		}
		all, children = all+u.CPU, children+u.Children
	}
	return all, children, nil
}

// patience is how long the controller may take to know every job at its start, and
// any new one.
const patience = 4 * time.Minute

// calm waits until the controller knows the jobs that have a stanza and has nothing
// more to do with them than to watch.
func (s subject) calm(ctx context.Context, client *api.Client, want int, window time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	known := 0
	for {
		if events, err := client.History(ctx); err == nil { // at first nobody answers
			jobs := map[string]bool{} // that the controller has dealt with; a list has those that it has not, too
			for _, e := range events {
				jobs[e.Job] = true
			}
			known = len(jobs)
		}
		if known >= want {
			break
		}
		if err := measure.Pause(ctx, time.Second); err != nil {
			return fmt.Errorf("the controller knows %d of %d jobs: %w", known, want, err)
		}
	}
	for {
		a, err := s.over(ctx, window)
		if err != nil {
			return err
		}
		b, err := s.over(ctx, window)
		if err != nil {
			return fmt.Errorf("the controller does not come to rest: %w", err)
		}
		if b.Share(b.Controller) >= 0.8*a.Share(a.Controller) {
			return nil // it does not become less any more
		}
	}
}

// look is how often the controller is asked what happened.
const look = 50 * time.Millisecond

// told waits until the controller has something to say of a job.
func told(ctx context.Context, client *api.Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if known, err := tells(ctx, client, id); known || err != nil {
			return err
		}
		if err := measure.Pause(ctx, look); err != nil {
			return fmt.Errorf("it is not seen: %w", err)
		}
	}
}

// tells tells whether the controller has something to say of a job. To ask it about
// that job would have it look.
func tells(ctx context.Context, client *api.Client, id string) (bool, error) {
	events, err := client.History(ctx)
	return slices.ContainsFunc(events, func(e api.Event) bool { return e.Job == id }), err
}

// seen submits jobs at random times, and tells of each how long after the return of
// sbatch the controller knew it.
func seen(ctx context.Context, c *slurmcluster.Cluster, client *api.Client, jobs int) ([]time.Duration, error) {
	var out []time.Duration
	for i := range jobs {
		if err := measure.Pause(ctx, time.Duration(rand.Int64N(int64(3*time.Second)))); err != nil { //nolint:gosec // any time will do
			return nil, err
		}
		user := []string{slurmcluster.Alpha, slurmcluster.Beta}[i%2]
		id, at, err := submit(ctx, c, user, tuned)
		if err != nil {
			return nil, err
		}
		if err := told(ctx, client, id); err != nil {
			return nil, fmt.Errorf("job %s: %w", id, err)
		}
		out = append(out, time.Since(at))
	}
	slices.Sort(out)
	return out, nil
}

// others submits a job without a stanza every second until it is told to stop.
func others(ctx context.Context, c *slurmcluster.Cluster) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, _, err := submit(ctx, c, slurmcluster.Beta, plain); err != nil && ctx.Err() == nil {
				ended <- err
				return
			}
			if measure.Pause(ctx, time.Second) != nil {
				ended <- nil
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-ended
	}
}
