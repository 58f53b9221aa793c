package fault

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sandbox"
)

// perRound is how many faults meet the jobs of one round.
const perRound = 34

// Options say how long a campaign is and which faults come when.
type Options struct {
	Faults int
	Seed   uint64
	For    time.Duration // no round begins later
}

// Flags are the options as flags of the test. Without flags they are a sample for every
// test run.
func Flags() *Options {
	o := &Options{}
	flag.IntVar(&o.Faults, "faults", 10, "how many faults to inject")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of which fault comes when")
	flag.DurationVar(&o.For, "for", 19*time.Minute, "how long to go on until there were that many")
	return o
}

// Sample reports whether a campaign is too short to prove much.
func (o Options) Sample() bool { return o.Faults <= perRound/2 }

// Campaign is rounds of faults in one system, until there were enough. V is the adapter's
// verdict on a job.
type Campaign[V any] struct {
	Options

	Owners   int
	Families []Family
	Story    *Story

	// Begin submits the jobs of a round.
	Begin func(r *Round) (Jobs[V], error)
	// Administer does each second what an administrator would, while the campaign lasts.
	Administer func(ctx context.Context)
	// Judge reports whether a job did right, what failed where the system under test did
	// wrong, and what is worth a note in the story.
	Judge func(v V) (right bool, failure, note string)
}

// Jobs are those of one round.
type Jobs[V any] interface {
	// Inject does the faults until all are done or no job is moved any more, and returns
	// what is left.
	Inject(faults []Fault) (left []Fault)
	// Finish lets the jobs come to their end and returns the verdict on each.
	Finish() (map[string]V, error)
	// Passive are the faults that happen by themselves.
	Passive() []Strike
	// Clear removes what is left of the jobs.
	Clear() error
}

// Result is the outcome of all jobs.
type Result[V any] struct {
	Options

	Strikes  []Strike
	Verdicts map[string]V
	Took     time.Duration
}

// Run injects the faults. The next round begins while the jobs of the last one come to
// their end.
func (c Campaign[V]) Run(t *testing.T) *Result[V] {
	t.Helper()
	began := time.Now()
	defer sandbox.Beside(t, "the administrator", func(ctx context.Context) error {
		for ctx.Err() == nil && c.Administer != nil {
			c.Administer(ctx)
			_ = driver.Pause(ctx, time.Second) // the loop looks at ctx
		}
		return nil
	})()
	out := &Result[V]{Options: c.Options, Verdicts: map[string]V{}}
	random := rand.New(rand.NewPCG(c.Seed, 0))
	todo := Plan(random, c.Families, c.Owners, c.Faults)
	var closing sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for number := 1; done < c.Faults && time.Since(began) < c.For; number++ {
		r := NewRound(c.Seed, number)
		jobs, err := c.Begin(r)
		if err != nil {
			t.Errorf("round %d: %v", number, err)
			break
		}
		// What is left in the end is what is hard to meet: a round has other faults as well.
		for len(todo) == 0 || !c.Sample() && len(todo) < perRound {
			todo = append(todo, Plan(random, c.Families, c.Owners, max(min(perRound, c.Faults), len(c.Families)))...)
		}
		// A few more than are wanted: some meet nothing.
		n := min(perRound, len(todo), 2*(c.Faults-done)+4)
		left := jobs.Inject(todo[:n])
		for i := range left {
			left[i].Owner = (left[i].Owner + 1) % c.Owners // there may be something that it can meet
		}
		todo = append(todo[n:], left...)
		done += len(r.Strikes())
		Progress("%s: round %d: %d faults in %v; %d faults after %v", t.Name(), number, len(r.Strikes()),
			time.Since(r.Began).Round(time.Second), done, time.Since(began).Round(time.Second))
		closing.Go(func() {
			got, err := jobs.Finish()
			if err != nil {
				t.Errorf("round %d: %v", r.Number, err)
			}
			mu.Lock()
			defer mu.Unlock()
			out.Strikes = append(append(out.Strikes, r.Strikes()...), jobs.Passive()...)
			c.judge(t, out, r, got)
			if err := jobs.Clear(); err != nil {
				t.Errorf("round %d: %v", r.Number, err)
			}
		})
	}
	closing.Wait()
	out.Took = time.Since(began)
	if done < c.Faults {
		t.Errorf("%d faults met something within %v, want %d", done, c.For, c.Faults)
	}
	return out
}

// judge takes in the verdicts of a round.
func (c Campaign[V]) judge(t *testing.T, out *Result[V], r *Round, got map[string]V) {
	t.Helper()
	fine := 0
	for id, v := range got {
		out.Verdicts[id] = v
		right, failure, note := c.Judge(v)
		if right {
			fine++
		}
		if failure != "" {
			t.Errorf("round %d: %s", r.Number, failure)
		}
		if note != "" {
			c.Story.Logf("round %d: %s", r.Number, note)
		}
	}
	for _, complaint := range r.Complaints() {
		t.Errorf("round %d: %s", r.Number, complaint)
	}
	Progress("%s: round %d: %d of %d jobs ended exactly once", t.Name(), r.Number, fine, len(got))
}

// Publish prints the table, and writes it to the file that FAULT_TABLE names.
func Publish(t *testing.T, table string) {
	t.Helper()
	t.Log("\n" + table)
	if path := os.Getenv("FAULT_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table), 0o644); err != nil { //nolint:gosec // it is for people
			t.Error(err)
		}
	}
}
