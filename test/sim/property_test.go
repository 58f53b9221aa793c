package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// machine is the size of the one node of the properties.
const (
	machine         = 6
	memoryOfMachine = 1 << 30
)

// discarding begins the ids of intents that discard.
const discarding = "discard-"

// story is a random sequence of what a controller may do to a few jobs.
type story struct {
	specs   []driver.Spec
	actions []action
}

type action struct {
	wait  time.Duration
	kind  int // of the constants below
	job   int
	cores int
	times int // how often an Advance is repeated

	discard bool // the new intent discards the attempt
}

const (
	doNothing = iota
	doStop
	doIntend // a new intent, which replaces the former one even in the middle of a move
	doAdvance
)

func drawStory(t *rapid.T) story {
	var s story
	for i := range rapid.IntRange(1, 5).Draw(t, "jobs") {
		behaviour := fmt.Sprintf("epochs=%d seconds=%d parallel=0.9 noise=0.1 start=%ds",
			rapid.IntRange(1, 12).Draw(t, "epochs"), rapid.IntRange(1, 20).Draw(t, "seconds"), rapid.IntRange(0, 3).Draw(t, "start"))
		behaviour += rapid.SampledFrom([]string{
			" checkpoint=2s", " checkpoint=0s", " checkpoint=90s", " checkpoint=2s owner_changes_at=20s",
			" checkpoint=2s checkpoint_exit=none", " ignore_signal=true", " checkpoint=2s memory=300MiB",
		}).Draw(t, "way")
		sp := spec(fmt.Sprintf("job-name=j%d cpus-per-task=%d mem=512M", i, rapid.IntRange(1, machine).Draw(t, "cores")), behaviour)
		if rapid.Bool().Draw(t, "held") {
			sp.NotBefore = time.Date(2000, 1, 1, 0, 0, rapid.IntRange(1, 60).Draw(t, "until"), 0, time.UTC) // a bubble begins with 2000
		}
		s.specs = append(s.specs, sp)
	}
	s.actions = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) action {
		return action{
			wait:  time.Duration(rapid.IntRange(0, 15000).Draw(t, "wait_ms")) * time.Millisecond,
			kind:  rapid.SampledFrom([]int{doNothing, doIntend, doAdvance, doAdvance, doAdvance, doAdvance, doAdvance, doStop}).Draw(t, "kind"),
			job:   rapid.IntRange(0, len(s.specs)-1).Draw(t, "job"),
			cores: rapid.IntRange(0, machine).Draw(t, "new_cores"),
			times: rapid.IntRange(1, 3).Draw(t, "times"),

			discard: rapid.IntRange(0, 3).Draw(t, "discard") == 0,
		}
	}), 0, 60).Draw(t, "actions")
	return s
}

// play acts the story out in a bubble and calls check at every moment. The
// errors of check are collected, since rapid's T may not be used in a bubble.
func (s story) play(t *testing.T, check func(c *sim.Cluster, jobs []driver.Job) error) (faults []error) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []sim.NodeSpec{{Name: "n", Cores: machine, MemoryBytes: memoryOfMachine}}
		c, err := sim.New(sim.Config{Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		look := func() []driver.Job {
			jobs, err := c.List(t.Context())
			faults = append(faults, err, check(c, jobs))
			return jobs
		}
		advance := func(in driver.Intent) {
			if _, err := c.Advance(t.Context(), in); !errors.Is(err, driver.ErrNoRoom) { // nothing was begun
				faults = append(faults, err)
			}
		}
		intents := make(map[int]driver.Intent)
		for i, sp := range s.specs {
			_, err := c.Start(t.Context(), driver.RequestID(fmt.Sprint(i)), sp)
			faults = append(faults, err)
		}
		for n, a := range s.actions {
			time.Sleep(a.wait)
			job := look()[a.job]
			switch in, ok := intents[a.job]; {
			case a.kind == doStop:
				faults = append(faults, c.Stop(t.Context(), job.ID))
			case a.kind == doIntend || a.kind == doAdvance && !ok:
				id := fmt.Sprintf("i%d", n)
				if a.discard {
					id = discarding + id
				}
				intents[a.job] = driver.Intent{
					ID: id, Discard: a.discard, Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint,
					Change:     driver.Change{Cores: a.cores, MemoryBytes: int64(a.cores) * 100 << 20},
					Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: 30 * time.Second, Exit: 85, Done: "^saved$"},
				}
			case a.kind == doAdvance:
				for range a.times {
					advance(in)
				}
			}
			look()
		}
		// What a controller owes: an intent that was begun is carried through.
		for range 2000 {
			for _, in := range intents {
				advance(in)
			}
			if jobs := look(); !slices.ContainsFunc(jobs, func(j driver.Job) bool { return !j.State.Ended() && j.State != driver.Stopped }) {
				return
			}
			time.Sleep(5 * time.Second)
		}
		faults = append(faults, errors.New("the jobs do not end"))
	})
	return faults
}

func checkStories(t *testing.T, check func(c *sim.Cluster, jobs []driver.Job) error) {
	t.Helper()
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStory(rt)
		if err := errors.Join(s.play(t, check)...); err != nil {
			rt.Fatalf("%v", err)
		}
	})
}

// Whatever happens, running jobs never hold more than the node has.
func TestNeverOverAllocates(t *testing.T) {
	checkStories(t, func(_ *sim.Cluster, jobs []driver.Job) error {
		cores, memory := 0, int64(0)
		for _, j := range jobs {
			if j.State != driver.Running {
				continue
			}
			c, m := j.Resources.Cores, j.Resources.MemoryBytes
			if j.Change.Cores != 0 {
				c = j.Change.Cores
			}
			if j.Change.MemoryBytes != 0 {
				m = j.Change.MemoryBytes
			}
			cores, memory = cores+c, memory+m
		}
		if cores > machine || memory > memoryOfMachine {
			return fmt.Errorf("%d cores and %d bytes are allocated", cores, memory)
		}
		return nil
	})
}

// Whatever is asked how often and in whatever order, a job's output holds its
// epochs from 1 on, in order and each once, and all of them where it succeeded. Only
// an intent that discards has epochs done again, once each.
func TestEachEpochOnce(t *testing.T) {
	checkStories(t, func(c *sim.Cluster, jobs []driver.Job) error {
		for _, j := range jobs {
			b, err := sim.ParseBehaviour(j.Filename, j.Source)
			if err != nil {
				return err
			}
			got := epochs(string(mustLog(c, j.ID)))
			again := 0
			for i, a := range j.Attempts {
				// An edit by the owner ends an intent that has discarded an attempt already.
				edited := i > 0 && j.Attempts[i-1].ExitCode == 137
				if strings.HasPrefix(a.Intent, discarding) || edited {
					again++
				}
			}
			last := 0
			for _, e := range got {
				if e <= last {
					again--
				}
				if e > last+1 || again < 0 {
					return fmt.Errorf("epochs of job %s: %v\n%s", j.ID, got, mustLog(c, j.ID))
				}
				last = e
			}
			if j.State == driver.Succeeded && last != b.Epochs {
				return fmt.Errorf("job %s succeeded with epoch %d of %d", j.ID, last, b.Epochs)
			}
		}
		return nil
	})
}

// An intent starts at most one attempt; attempts follow one another without
// overlap; what ended stays ended.
func TestIntentStartsAtMostOneAttempt(t *testing.T) {
	ended := func() func(j driver.Job) error {
		seen := map[driver.JobID]driver.State{}
		return func(j driver.Job) error {
			if was, ok := seen[j.ID]; ok && was != j.State {
				return fmt.Errorf("job %s was %s and is %s", j.ID, was, j.State)
			}
			if j.State.Ended() {
				seen[j.ID] = j.State
			}
			return nil
		}
	}
	stay := ended()
	var of *sim.Cluster
	var checked int
	check := func(c *sim.Cluster, jobs []driver.Job) error {
		if of != c {
			of, stay = c, ended()
		}
		checked++
		for _, j := range jobs {
			if err := stay(j); err != nil {
				return err
			}
			started := map[string]int{}
			for i, a := range j.Attempts {
				if i > 0 && a.Started.Before(j.Attempts[i-1].Ended) {
					return fmt.Errorf("attempts of job %s overlap: %+v", j.ID, j.Attempts)
				}
				if i > 0 && a.Intent != "" && a.Intent == j.Attempts[i-1].Intent {
					continue // it saved after its grace and went on under the settings that it had
				}
				if started[a.Intent]++; a.Intent != "" && started[a.Intent] > 1 {
					return fmt.Errorf("intent %s started two attempts of job %s: %+v", a.Intent, j.ID, j.Attempts)
				}
			}
		}
		return nil
	}
	checkStories(t, check)
	if checked == 0 {
		t.Error("nothing was checked")
	}
}
