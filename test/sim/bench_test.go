package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// Most of these tests wait for the clock, and hardly use a CPU.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// pattern is what the jobs of these tests print at the end of an epoch.
const pattern = `^epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`

// bench is one cluster in a bubble, and a driver of it that fails the test.
type bench struct {
	*testing.T
	c     *sim.Cluster
	start time.Time
}

// inBubble runs f in virtual time on its own cluster.
func inBubble(t *testing.T, cfg sim.Config, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(&bench{T: t, c: c, start: time.Now()})
	})
}

// script makes a job file: options without their dashes, then #SIM lines.
func script(options, behaviour string) string {
	var s strings.Builder
	s.WriteString("#!/bin/sh\n")
	for option := range strings.FieldsSeq(options) {
		s.WriteString("#SBATCH --" + option + "\n")
	}
	s.WriteString("#SIM " + behaviour + "\n./train\n")
	return s.String()
}

func spec(options, behaviour string) driver.Spec {
	return driver.Spec{
		Owner: "alice", Filename: "job.sh", Source: []byte(script(options, behaviour)),
		Progress: driver.Progress{Pattern: pattern},
	}
}

// submit starts a job; the request is its place in the order of submission.
func (b *bench) submit(options, behaviour string) driver.Job {
	b.Helper()
	return b.submitSpec(spec(options, behaviour))
}

func (b *bench) submitSpec(s driver.Spec) driver.Job {
	b.Helper()
	jobs, err := b.c.List(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	job, err := b.c.Start(b.Context(), driver.RequestID(strconv.Itoa(len(jobs))), s)
	if err != nil {
		b.Fatalf("Start: %v", err)
	}
	return job
}

func (b *bench) get(id driver.JobID) driver.Job {
	b.Helper()
	job, err := b.c.Get(b.Context(), id)
	if err != nil {
		b.Fatalf("Get(%s): %v", id, err)
	}
	return job
}

func (b *bench) logs(id driver.JobID) string {
	b.Helper()
	r, err := b.c.Logs(b.Context(), id, 0)
	if err != nil {
		b.Fatalf("Logs(%s): %v", id, err)
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// until waits in virtual time until since the start.
func (b *bench) until(since time.Duration) { time.Sleep(time.Until(b.start.Add(since))) }

// ended waits for the job's end, for a day of virtual time.
func (b *bench) ended(id driver.JobID) driver.Job {
	b.Helper()
	for range 24 * 60 {
		if job := b.get(id); job.State.Ended() {
			return job
		}
		time.Sleep(time.Minute)
	}
	b.Fatalf("job %s does not end: %+v", id, b.get(id))
	return driver.Job{}
}

// intent makes an intent for the job as it is now.
func (b *bench) intent(id driver.JobID, name string, ch driver.Change) driver.Intent {
	b.Helper()
	job := b.get(id)
	return driver.Intent{
		ID: name, Job: id, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: ch,
		Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Exit: 85},
	}
}

func (b *bench) advance(in driver.Intent) driver.StepKind {
	b.Helper()
	step, err := b.c.Advance(b.Context(), in)
	if err != nil {
		b.Fatalf("Advance(%s): %v", in.ID, err)
	}
	return step.Kind
}

// drive advances once a second until the intent is done, and returns the steps
// without repetitions.
func (b *bench) drive(in driver.Intent) []driver.StepKind {
	b.Helper()
	var steps []driver.StepKind
	for range 3600 {
		kind := b.advance(in)
		if len(steps) == 0 || steps[len(steps)-1] != kind {
			steps = append(steps, kind)
		}
		if kind.Done() {
			return steps
		}
		time.Sleep(time.Second)
	}
	b.Fatalf("intent %s does not end: %v", in.ID, steps)
	return nil
}

// json is all of the values as text.
func (b *bench) json(values ...any) string {
	b.Helper()
	text, err := json.MarshalIndent(values, "", " ")
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// epochs are the numbers of the epochs in the output.
func epochs(output string) []int {
	var out []int
	for _, m := range regexp.MustCompile(`(?m)^epoch (\d+)/`).FindAllStringSubmatch(output, -1) {
		n, _ := strconv.Atoi(m[1]) // the pattern takes digits only
		out = append(out, n)
	}
	return out
}

// wantEpochs fails the test unless every epoch from 1 to n is there once, in
// order.
func (b *bench) wantEpochs(id driver.JobID, n int) {
	b.Helper()
	got := epochs(b.logs(id))
	ok := len(got) == n
	for i, e := range got {
		ok = ok && e == i+1
	}
	if !ok {
		b.Errorf("epochs of job %s: %v, want each of 1 to %d once; output:\n%s", id, got, n, b.logs(id))
	}
}

func userName(t *testing.T) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return me.Username
}

// mustLog is a job's output outside a test's own goroutine.
func mustLog(c *sim.Cluster, id driver.JobID) []byte {
	r, err := c.Logs(context.Background(), id, 0)
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		panic(err)
	}
	return text
}
