package sampler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// marked lists the epochs of a job's marks, in order, with the loss where there is one.
func marked(t *testing.T, store *window.Store, id string) string {
	t.Helper()
	var out []string
	for _, s := range see(t, store, id).Samples {
		switch {
		case s.Mark == nil:
		case s.Mark.Loss != nil:
			out = append(out, fmt.Sprintf("%d(%v)", s.Mark.Epoch, *s.Mark.Loss))
		default:
			out = append(out, fmt.Sprint(s.Mark.Epoch))
		}
	}
	return strings.Join(out, " ")
}

// Two listeners on one output, a job that reports by itself, or both: what different processes
// report twice counts once.
func TestWhatAnotherProcessHasToldCountsOnce(t *testing.T) {
	t.Parallel()
	type say struct {
		pid   int
		epoch int // 0 = it saved
		loss  float64
		after time.Duration // that the line was read after the one before
	}
	const a, b, c = 77, 78, 79
	for _, tc := range []struct {
		name  string
		says  []say
		marks string
		saves int
	}{
		{"one process may tell an epoch twice", []say{{pid: a, epoch: 1}, {pid: a, epoch: 1}}, "1 1", 0},
		{"two tell each epoch", []say{{pid: a, epoch: 1}, {pid: b, epoch: 1}, {pid: b, epoch: 2}, {pid: a, epoch: 2}, {pid: a, epoch: 3}, {pid: b, epoch: 3}}, "1 2 3", 0},
		{"the second begins late and from the start", []say{{pid: a, epoch: 1}, {pid: a, epoch: 2}, {pid: a, epoch: 3}, {pid: b, epoch: 1}, {pid: b, epoch: 2}, {pid: b, epoch: 3}, {pid: b, epoch: 4}, {pid: a, epoch: 4}}, "1 2 3 4", 0},
		{"two tell an epoch's training and its validation", []say{{pid: a, epoch: 1, loss: .5}, {pid: a, epoch: 1, loss: .4}, {pid: b, epoch: 1, loss: .5}, {pid: b, epoch: 1, loss: .4}}, "1(0.5) 1(0.4)", 0},
		{"what differs is no repeat", []say{{pid: a, epoch: 1, loss: .5}, {pid: b, epoch: 1, loss: .4}, {pid: c, epoch: 1}}, "1(0.5) 1(0.4) 1", 0},
		{"a job that begins again at the first epoch is believed", []say{{pid: a, epoch: 1}, {pid: a, epoch: 2}, {pid: a, epoch: 1}, {pid: b, epoch: 1}}, "1 2 1", 0},
		{"each save counts", []say{{pid: a}, {pid: a, after: time.Millisecond}, {pid: a, after: time.Hour}}, "", 3},
		{"two tell each save", []say{{pid: a}, {pid: b, after: 100 * time.Millisecond}, {pid: a, after: time.Minute}, {pid: b}}, "", 2},
		{"two tell saves that follow each other closely", []say{{pid: a}, {pid: b}, {pid: a, after: 50 * time.Millisecond}, {pid: b}}, "", 2},
		{"different processes save one after the other", []say{{pid: a}, {pid: b, after: 3 * time.Second}, {pid: c, after: 3 * time.Second}}, "", 3},
		{"a save is no epoch", []say{{pid: a, epoch: 1}, {pid: a}, {pid: a, epoch: 2}}, "1 2", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				for _, pid := range []int{a, b, c} {
					w.pids[pid] = local("7")
				}
				w.begin("7", 1)
				s, store := run(t, w)
				for _, say := range tc.says {
					time.Sleep(say.after)
					r := api.Report{Saved: say.epoch == 0, Epoch: say.epoch, Time: time.Now()}
					if say.loss > 0 {
						r.Loss = &say.loss
					}
					if err := s.Mark(t.Context(), who(say.pid, 1000), r); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(tc.marks, marked(t, store, "7")); diff != "" {
					t.Errorf("marks (-want +got):\n%s", diff)
				}
				if got := see(t, store, "7").Job.Saves; got != tc.saves {
					t.Errorf("%d saves, want %d", got, tc.saves)
				}
				wait(time.Second + time.Millisecond)
				stats := s.Snapshot().Stats
				if all := stats.Marks + stats.Saves + stats.MarksRepeated; all != uint64(len(tc.says)) || stats.Saves != uint64(tc.saves) {
					t.Errorf("%d marks, %d saves and %d repeats of %d reports", stats.Marks, stats.Saves, stats.MarksRepeated, len(tc.says))
				}
			})
		})
	}
}

// Slurm kills the listener as soon as the script has ended: its last report is read
// when its process is gone.
func TestTheLastReportOfAProcessThatIsGoneCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[77] = local("7")
		w.begin("7", 1)
		s, store := run(t, w)
		mark := func(pid int, uid uint32, epoch int) error {
			return s.Mark(t.Context(), who(pid, uid), api.Report{Epoch: epoch})
		}
		if err := mark(77, 1000, 1); err != nil {
			t.Fatal(err)
		}
		w.change(func() { delete(w.pids, 77) })
		if err := mark(77, 1000, 2); err != nil {
			t.Errorf("the last epoch: %v", err)
		}
		again := who(77, 1000)
		again.Start = 2
		for name, err := range map[string]error{
			"that began later under its number": s.Mark(t.Context(), again, api.Report{Epoch: 3}),
			"of another user under its number":  mark(77, 1001, 3),
			"that never was in the job":         mark(78, 1000, 3),
		} {
			if !errors.Is(err, sampler.ErrNoJob) {
				t.Errorf("a process %s: %v, want %v", name, err, sampler.ErrNoJob)
			}
		}
		// The scheduler removes the job while further reports of the listener wait: one is read
		// when the cgroup is missed, one when the attempt is closed.
		w.end("7")
		for i, after := range []time.Duration{300 * time.Millisecond, 3 * time.Second} {
			wait(after)
			if err := mark(77, 1000, 3+i); err != nil {
				t.Errorf("%v after the end: %v", after, err)
			}
			if err := s.Mark(t.Context(), again, api.Report{Epoch: 5}); !errors.Is(err, sampler.ErrNoJob) {
				t.Errorf("another process under its number, after the end: %v, want %v", err, sampler.ErrNoJob)
			}
		}
		if got := marked(t, store, "7"); got != "1 2 3 4" {
			t.Errorf("marks %s, want 1 2 3 4", got)
		}
	})
}

// A connection outlives the process that opened it, whose number the kernel gives to
// another one, such as a process of another user's job.
func TestAReportIsRefusedUnlessItsOwnProcessIsInTheJobOfItsUser(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		caller  peercred.Caller
		manager string
		took    bool
	}{
		{"a process of the job's user", peercred.Caller{PID: 77, UID: 1000, Start: 5}, attrib.Slurm, true},
		{"root beside the job, as a supervisor", peercred.Caller{PID: 77, UID: 0, Start: 5}, attrib.Slurm, true},
		{"a process that ended before its number came into the job", peercred.Caller{PID: 77, UID: 1000, Start: 4}, attrib.Slurm, false},
		{"a process that had ended when it was asked who it is", peercred.Caller{PID: 77, UID: 1000}, attrib.Slurm, false},
		{"another user's process", peercred.Caller{PID: 77, UID: 1001, Start: 5}, attrib.Slurm, false},
		{"a process of Nomad's task, whose image has several users", peercred.Caller{PID: 77, UID: 1001, Start: 5}, attrib.Nomad, true},
		{"a process whose number came into Nomad's task", peercred.Caller{PID: 77, UID: 1001, Start: 4}, attrib.Nomad, false},
	} {
		for _, report := range []api.Report{{Epoch: 1}, {Saved: true}} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					key := attrib.Key{Manager: tc.manager, ID: "42", Attempt: 1}
					w.jobs[key] = &burn{from: time.Now(), cores: 1, dirs: map[string]string{"unified": "/42"}, confirmed: true}
					w.pids[77], w.births = key, map[int]uint64{77: 5}
					s, store := run(t, w)
					err := s.Mark(t.Context(), tc.caller, report)
					if took := err == nil; took != tc.took || !took && !errors.Is(err, sampler.ErrNoJob) {
						t.Errorf("%v, want it taken: %v", err, tc.took)
					}
					if told := see(t, store, "42").Job.Saves > 0 || marked(t, store, "42") != ""; told != tc.took {
						t.Errorf("it had an effect: %v, want %v", told, tc.took)
					}
				})
			})
		}
	}
}

// Slurm kills a listener right after its last line. A process that gets its number and ends as
// fast looks the same, but for its own user.
func TestOneThatHadEndedWhenItsConnectionWasAcceptedCountsForItsUsersJobAlone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, manager string
		uid           uint32
		took          bool
	}{
		{"in a user's own job", attrib.Slurm, 1000, true},
		{"of another user", attrib.Slurm, 1001, false},
		{"in Nomad, where another's task may have the same uid", attrib.Nomad, 1000, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				key := attrib.Key{Manager: tc.manager, ID: "42", Attempt: 1}
				w.jobs[key] = &burn{from: time.Now(), cores: 1, dirs: map[string]string{"unified": "/42"}, confirmed: true}
				w.pids[77] = key
				s, store := run(t, w)
				if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: 1}); err != nil {
					t.Fatal(err)
				}
				w.change(func() { delete(w.pids, 77) })
				err := s.Mark(t.Context(), peercred.Caller{PID: 77, UID: tc.uid}, api.Report{Epoch: 2})
				if took := err == nil; took != tc.took || !took && !errors.Is(err, sampler.ErrNoJob) {
					t.Errorf("%v, want it taken: %v", err, tc.took)
				}
				if told := marked(t, store, "42") == "1 2"; told != tc.took {
					t.Errorf("it had an effect: %v, want %v", told, tc.took)
				}
			})
		})
	}
}

func TestASaveKeepsTheTimeAtWhichItsLineWasRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ ago, want time.Duration }{
		"a report that comes late":                         {time.Minute, time.Minute},
		"one that waited for longer than marks are old":    {time.Hour, 15 * time.Minute},
		"one of a clock that is ahead is of now":           {-time.Hour, 0},
		"one of now comes at once and is the latest there": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.pids[77] = local("7")
				w.begin("7", 1)
				s, store := run(t, w)
				now := time.Now()
				if err := s.Mark(t.Context(), who(77, 1000), api.Report{Saved: true, Time: now.Add(-tc.ago)}); err != nil {
					t.Fatal(err)
				}
				if got := now.Sub(see(t, store, "7").Job.Saved); got != tc.want {
					t.Errorf("saved %v ago, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestSavesAreCountedForEachAttemptAndSurviveARestartOfTheExporter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 1}
		w.pids[77] = slurm("42")
		store := window.New(window.Config{})
		s := runIn(t, w, store, sampler.Config{Keep: true, Boot: "this"})
		save := func(s *sampler.Sampler) {
			t.Helper()
			if err := s.Mark(t.Context(), who(77, 1000), api.Report{Saved: true}); err != nil {
				t.Fatal(err)
			}
		}
		saves := func(store *window.Store, attempt int) int {
			t.Helper()
			win, ok := store.Window("slurm/42", attempt, 0, 0, func(api.Job) bool { return true })
			if !ok {
				t.Fatalf("no attempt %d", attempt)
			}
			return win.Job.Saves
		}
		begins := api.Report{Begins: true, Time: time.Now().Add(-time.Second)}
		if err := s.Mark(t.Context(), who(77, 1000), begins); err != nil {
			t.Fatal(err)
		}
		if win := see(t, store, "42"); !win.Job.Heard.Equal(begins.Time) || slices.ContainsFunc(win.Samples, func(x api.Sample) bool { return x.Mark != nil }) {
			t.Errorf("its epochs are heard of since %v, want %v and no mark", win.Job.Heard, begins.Time)
		}
		save(s)
		save(s)
		w.change(func() { w.jobs[slurm("42")].attempt, w.jobs[slurm("42")].birth = 2, 2 })
		wait(time.Second)
		save(s)
		if one, two := saves(store, 1), saves(store, 2); one != 2 || two != 1 {
			t.Errorf("%d saves of the first attempt and %d of the second, want 2 and 1", one, two)
		}
		wait(time.Second + time.Millisecond)

		again := window.New(window.Config{})
		next := runIn(t, w, again, sampler.Config{Keep: true, Boot: "this", Earlier: s.Snapshot().State})
		save(next)
		if one, two := saves(again, 1), saves(again, 2); one != 2 || two != 2 {
			t.Errorf("after the restart %d saves of the first attempt and %d of the second, want 2 and 2", one, two)
		}
	})
}
