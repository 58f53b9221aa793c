package daemon

import (
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestWhenAttemptsRanIsKnownOfAllOrOfNone(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	for _, c := range []struct {
		name    string
		job     driver.Job
		minutes float64 // negative: not known
	}{
		{"none began", driver.Job{State: driver.Pending}, 0},
		{"two that ended", driver.Job{State: driver.Succeeded, Ended: at(9), Attempts: []driver.Attempt{{Started: at(0), Ended: at(2)}, {Started: at(4), Ended: at(9)}}}, 7},
		{"one that runs", driver.Job{State: driver.Running, Attempts: []driver.Attempt{{Started: at(0), Ended: at(2)}, {Started: at(4)}}}, 8},
		{"the last without an end is as long as its job", driver.Job{State: driver.Failed, Ended: at(5), Attempts: []driver.Attempt{{Started: at(1)}}}, 4},
		{"one that ended and has no beginning", driver.Job{State: driver.Cancelled, Ended: at(9), Attempts: []driver.Attempt{{Started: at(0), Ended: at(2)}, {Ended: at(9)}}}, -1},
		{"one that has neither", driver.Job{State: driver.Running, Attempts: []driver.Attempt{{}}}, -1},
		{"one before the last without an end", driver.Job{State: driver.Running, Attempts: []driver.Attempt{{Started: at(0)}, {Started: at(4)}}}, -1},
		{"one of a job whose end is unknown", driver.Job{State: driver.Lost, Attempts: []driver.Attempt{{Started: at(0)}}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := spans(c.job, at(10))
			if known := got != nil; known != (c.minutes >= 0) {
				t.Fatalf("spans %+v", got)
			}
			sum := 0.0
			for _, s := range got {
				sum += s.End.Sub(s.Start).Minutes()
			}
			if sum != max(0, c.minutes) {
				t.Errorf("ran %g minutes, want %g", sum, c.minutes)
			}
		})
	}
}

func TestCoreHoursAreOfWhatAnAttemptWasGiven(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	job := driver.Job{State: driver.Succeeded, Ended: noon.Add(3 * time.Hour), Resources: driver.Resources{Cores: 2}}
	for i, a := range []driver.Attempt{{}, {Change: driver.Change{Cores: 1}}, {CPUs: 32, Change: driver.Change{Cores: 1}}} {
		a.Started, a.Ended = noon.Add(time.Duration(i)*time.Hour), noon.Add(time.Duration(i+1)*time.Hour)
		job.Attempts = append(job.Attempts, a)
	}
	var cores []int
	for _, s := range spans(job, noon) {
		cores = append(cores, s.Cores)
	}
	if !slices.Equal(cores, []int{2, 1, 32}) {
		t.Errorf("cores %v, want those asked for, changed and given", cores)
	}
}

func TestARecordHasTheTimeOfAJobThatItsSchedulerHasForgotten(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 6, 1, hour, 0, 0, 0, time.UTC) }
	two := tuning.Settings{tuning.Cores: tuning.Number(2)}
	run := func(n int) reconcile.Run { return reconcile.Run{Attempt: n, Settings: two} }
	for _, tt := range []struct {
		name   string
		course reconcile.Course
		hours  float64 // negative: not known
	}{
		{"its attempts", reconcile.Course{Runs: []reconcile.Run{run(1), run(2)}, Attempts: []driver.Attempt{
			{Started: at(0), Ended: at(1)}, {Started: at(4), Ended: at(7), Change: driver.Change{Cores: 1}},
		}}, 5},
		{"the only run, as earlier versions recorded it", reconcile.Course{Runs: []reconcile.Run{run(1)}}, 14},
		{"not where earlier versions recorded several runs", reconcile.Course{Runs: []reconcile.Run{run(1), run(2)}}, -1},
		{"not where it never ran", reconcile.Course{}, -1},
	} {
		tt.course.State, tt.course.Started, tt.course.Ended = driver.Succeeded, at(0), at(7)
		got := rowOf(&reconcile.Record{Phase: reconcile.Ended, Request: reconcile.Request{Own: two}, Course: tt.course}).CoreHours()
		if known := got != nil; known != (tt.hours >= 0) || known && *got != tt.hours {
			t.Errorf("%s: %v core-hours, want %g", tt.name, got, tt.hours)
		}
	}
}

func TestAJobThatVanishedWhileItWaitedHasWaitedUntilThen(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	rec := &reconcile.Record{
		Identity: reconcile.Identity{Job: "7_4", Submitted: noon}, Phase: reconcile.Ended, Course: reconcile.Course{State: driver.Lost},
		Story: reconcile.Story{History: []reconcile.Entry{{At: noon.Add(time.Minute), To: reconcile.Ended}}},
	}
	if got := status(jobOf(rec), rec, noon.Add(24*time.Hour)); !got.Ended || got.State != "lost" || got.Waited != 60 || got.Seconds != 0 {
		t.Errorf("%+v, want one that waited a minute", got)
	}
}

func TestAPrunedRecordIsAForgottenRow(t *testing.T) {
	t.Parallel()
	rec := ended("7", time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	if rowOf(rec).Forgotten || !rowOf(rec.Rest()).Forgotten {
		t.Errorf("before %+v, after %+v", rowOf(rec), rowOf(rec.Rest()))
	}
}

func TestTheRecordsOfOthersAreNotDecoded(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	r, err := loadRecords(store)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for i, who := range []string{"alice", "bob", "alice"} {
		rec := ended(string(rune('1'+i)), at)
		rec.Owner, rec.Submitted = who, at.Add(-time.Duration(i)*time.Hour)
		if err := r.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.PutJSON(bucketRecords, "2", "no record"); err != nil {
		t.Fatal(err)
	}
	mine, err := r.owned(func(owner string) bool { return owner == "alice" })
	if err != nil || len(mine) != 2 || mine[0].Job != "3" || mine[1].Job != "1" {
		t.Errorf("records %+v (%v)", mine, err)
	}
	if _, err := r.owned(func(string) bool { return true }); err == nil {
		t.Error("a record that cannot be read is not missed")
	}
	d := &Daemon{records: r, services: &services{driver: listing{}}}
	if rows, err := d.reportRows(t.Context(), func(owner string) bool { return owner == "alice" }, at); err != nil || len(rows) != 2 {
		t.Errorf("rows %+v (%v)", rows, err)
	}
}

func TestUsersSeeTheStrataOfTheirOwnJobs(t *testing.T) {
	t.Parallel()
	profile := tuning.Profile{Schema: "s", Machine: "m", Settings: tuning.Settings{tuning.Cores: tuning.Number(2), "batch": tuning.Number(9)}}
	key := classify.KeyOf(profile)
	strata := func() []api.KnownStratum {
		return []api.KnownStratum{
			{Schema: "s", Machine: "another", Settings: key.Settings},
			{Schema: "s", Machine: "m", Settings: key.Settings, Runs: 3},
			{Schema: "s", Machine: "m", Settings: "cores=8"},
		}
	}
	got := strataOf(strata(), []knowledge.Observation{{}, {Profiles: []tuning.Profile{profile}}})
	if len(got) != 1 || got[0].Machine != "m" || got[0].Runs != 3 {
		t.Errorf("strata %+v", got)
	}
	if got := strataOf(strata(), nil); got == nil || len(got) != 0 {
		t.Errorf("one without a job sees %+v", got)
	}
}
