package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
)

// waiting is a broker with a job that waits, has no stanza, and asks for an hour.
func waiting(t *testing.T, change func(*fakeJob)) *rig {
	t.Helper()
	r := newRig(t, func(c *broker.Config) { c.Advice = []string{"main"} })
	r.f.with(func(j *fakeJob) {
		j.state, j.admin, j.script = "PENDING", "", "#!/bin/sh\n"
		if change != nil {
			change(j)
		}
	})
	return r
}

func advice(limit time.Duration, nice int) driver.Advice {
	return driver.Advice{Job: "7", TimeLimit: limit, Nice: nice}
}

const quarter = 15 * time.Minute

func TestWhatAdviceAJobIsGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*fakeJob)
		advice driver.Advice
		want   error
		words  string // of the error, else the action
	}{
		{"a waiting job gets a shorter limit", nil, advice(quarter, 0), nil, "update 7 TimeLimit=15"},
		{"and a lower priority beside it, from its owner's on", func(j *fakeJob) { j.nice = 5 }, advice(quarter, 30), nil, "update 7 TimeLimit=15 Nice=35"},
		{"a limit that it has is not set again", nil, advice(time.Hour, 0), nil, ""},
		{"a job of several nodes gets one where no limits are enforced", func(j *fakeJob) { j.nodes = 2 }, advice(quarter, 0), nil, "update 7 TimeLimit=15"},
		{"none gets more than its owner asked for", nil, advice(2*time.Hour, 0), driver.ErrDenied, "more than the 1h0m0s"},
		{"a job that runs keeps its limit", func(j *fakeJob) { j.state = "RUNNING" }, advice(quarter, 0), driver.ErrConflict, "does not wait"},
		{"a job that has ended is left alone", func(j *fakeJob) { j.state = "COMPLETED" }, advice(quarter, 0), driver.ErrConflict, "ended"},
		{"a job whose owner names no limit has none to go back to", func(j *fakeJob) { j.minutes = 0 }, advice(quarter, 0), driver.ErrDenied, "named no time limit"},
		{"an owner who wants none gets none", func(j *fakeJob) { j.comment = "pitchpipe:off" }, advice(0, 9), driver.ErrDenied, "pitchpipe:off"},
		{"a job that the tuner changes is the tuner's", func(j *fakeJob) {
			j.admin, j.script = accepted, "#!/bin/sh\n#TUNE mode=apply\n"
		}, advice(quarter, 0), driver.ErrDenied, "its stanza has it tuned"},
		{"a job that waits for a limit of the site is not freed from it", func(j *fakeJob) { j.reason = "AssocGrpCPUMinutesLimit" }, advice(quarter, 0), driver.ErrDenied, "AssocGrpCPUMinutesLimit"},
		{"a job that could not run again keeps its limit", func(j *fakeJob) { j.noRequeue = true }, advice(quarter, 0), driver.ErrDenied, "--no-requeue"},
		{"a job with a deadline is left alone", func(j *fakeJob) { j.deadline = "2030-01-01T00:00:00" }, advice(quarter, 0), driver.ErrUnsupported, "deadline"},
		{"root's jobs are left alone", func(j *fakeJob) { j.uid = 0 }, advice(quarter, 0), driver.ErrDenied, "root"},
		{"seconds are no limit", nil, advice(90*time.Second, 0), driver.ErrInvalid, "whole minutes"},
		{"a higher priority is no advice", nil, advice(0, -1), driver.ErrInvalid, "from 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := waiting(t, c.change)
			err := r.client.Advise(t.Context(), c.advice)
			did := strings.Join(r.f.did(), "; ")
			if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.words) || did != "") || err == nil && did != c.words {
				t.Errorf("%v, want %v with %q; done: %q", err, c.want, c.words, did)
			}
		})
	}
}

func TestAPartitionWithoutTheSitesWordGetsNoAdvice(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.with(func(j *fakeJob) { j.state, j.admin = "PENDING", "" })
	if err := r.client.Advise(t.Context(), advice(quarter, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "broker.advice") {
		t.Errorf("%v, want %v", err, driver.ErrDenied)
	}
}

func TestAJobThatOthersDependOnKeepsItsLimit(t *testing.T) {
	t.Parallel()
	r := waiting(t, nil)
	r.f.dependants = "8 7 afterok:7(unfulfilled) x\n"
	if err := r.client.Advise(t.Context(), advice(quarter, 0)); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("%v, want %v", err, driver.ErrUnsupported)
	}
}

func TestAJobWhoseScriptCannotBeReadIsNotTakenForOneWithoutAStanza(t *testing.T) {
	t.Parallel()
	r := waiting(t, func(j *fakeJob) { j.admin = "pitchpipe:1:" })
	r.f.unread = fmt.Errorf("slurmctld is away: %w", driver.ErrTransient)
	if err := r.client.Advise(t.Context(), advice(quarter, 0)); !errors.Is(err, driver.ErrTransient) || len(r.f.did()) > 0 {
		t.Errorf("%v after %q, want %v", err, r.f.did(), driver.ErrTransient)
	}
}

// advised is a job that has 15 minutes instead of an hour, and a nice value of 35 instead of 5.
func advised(t *testing.T) *rig {
	t.Helper()
	r := waiting(t, func(j *fakeJob) { j.nice = 5 })
	for range 2 { // a repeat does nothing
		if err := r.client.Advise(t.Context(), advice(quarter, 30)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// does waits until the broker has done all of this.
func (r *rig) does(t *testing.T, want ...string) {
	t.Helper()
	want = append([]string{"update 7 TimeLimit=15 Nice=35"}, want...)
	for deadline := time.Now().Add(30 * time.Second); !slices.Equal(r.f.did(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("done: %q, want %q", r.f.did(), want)
		}
	}
}

func TestAdviceIsTakenBackAndTheOwnersWordStays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		owner func(*fakeJob) // what he changes meanwhile
		want  []string
	}{
		{"what he asked for returns", func(*fakeJob) {}, []string{"update 7 TimeLimit=60 Nice=5"}},
		{"the owner's nice value stays", func(j *fakeJob) { j.nice = 70 }, []string{"update 7 TimeLimit=60"}},
		{"the owner's limit stays", func(j *fakeJob) { j.minutes = 20 }, []string{"update 7 Nice=5"}},
		{"also after he wanted no advice any more", func(j *fakeJob) { j.comment = "pitchpipe:off" }, []string{"update 7 TimeLimit=60 Nice=5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := advised(t)
			r.f.with(c.owner)
			if err := r.client.Advise(t.Context(), advice(0, 0)); err != nil {
				t.Fatal(err)
			}
			r.does(t, c.want...)
		})
	}
}

// TestTheOwnersLimitReturnsWithoutAController: no controller asks for it, and the broker that lowered the
// limit is gone, too.
func TestTheOwnersLimitReturnsWithoutAController(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*fakeJob)
		want   []string
	}{
		{"a job that has long to go keeps the lower one", func(j *fakeJob) { j.state, j.ran = "RUNNING", time.Minute }, nil},
		{"a job that is about to meet the lower one gets it", func(j *fakeJob) { j.state, j.ran = "RUNNING", 14*time.Minute }, []string{"update 7 TimeLimit=60"}},
		{"a job that is past the lower one gets it", func(j *fakeJob) { j.state, j.ran = "RUNNING", 16*time.Minute }, []string{"update 7 TimeLimit=60"}},
		{"a job that was ended by the lower one runs again with it", func(j *fakeJob) { j.state, j.ran = "TIMEOUT", 15*time.Minute }, []string{"rerun 7", "update 7 TimeLimit=60 StartTime=now+2"}},
		{"a job that was ended by its owner's has ended", func(j *fakeJob) { j.state, j.minutes = "TIMEOUT", 60 }, nil},
		{"a job that has failed has ended", func(j *fakeJob) { j.state = "FAILED" }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := advised(t)
			r.f.with(c.change)
			r.restart(t)
			if r.does(t, c.want...); c.want == nil {
				time.Sleep(50 * time.Millisecond) // its first look is over long before
				r.does(t)
			}
		})
	}
}

// TestAnExtensionThatIsLostIsRepeated: the outcome of the update is unknown, and the broker is
// killed.
func TestAnExtensionThatIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	r := advised(t)
	r.f.with(func(j *fakeJob) { j.state, j.ran = "RUNNING", 14*time.Minute })
	r.f.mu.Lock()
	r.f.lose = "update 7 TimeLimit=60"
	r.f.mu.Unlock()
	r.restart(t)
	for lost := false; !lost; time.Sleep(time.Millisecond) {
		r.f.mu.Lock()
		lost = r.f.lose == ""
		r.f.mu.Unlock()
	}
	r.restart(t)
	r.does(t, "update 7 TimeLimit=60")
}

func TestAJobThatRanIntoALowerLimitIsNotLoweredAgain(t *testing.T) {
	t.Parallel()
	r := advised(t)
	r.f.with(func(j *fakeJob) { j.state = "TIMEOUT" })
	r.restart(t)
	r.does(t, "rerun 7", "update 7 TimeLimit=60 StartTime=now+2")
	if err := r.client.Advise(t.Context(), advice(quarter, 30)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "ran into a lower limit") {
		t.Errorf("%v, want %v", err, driver.ErrDenied)
	}
}
