package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/exporter/api"
)

func stored(t *testing.T) (*knowledge.Store, *records) {
	t.Helper()
	store, err := knowledge.Open(filepath.Join(t.TempDir(), "knowledge"), knowledge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r, err := loadRecords(store)
	if err != nil {
		t.Fatal(err)
	}
	return store, r
}

func loaded(t *testing.T, r *records, id driver.JobID) *reconcile.Record {
	t.Helper()
	rec, err := r.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestARecordIsWhatTheStoreHolds, although it is not decoded each time.
func TestARecordIsWhatTheStoreHolds(t *testing.T) {
	t.Parallel()
	store, r := stored(t)
	if _, err := r.Load(t.Context(), "1"); !errors.Is(err, reconcile.ErrNoRecord) {
		t.Errorf("before there is one: %v", err)
	}
	if err := r.Save(t.Context(), &reconcile.Record{Identity: reconcile.Identity{Job: "1"}, Phase: reconcile.Seen, Course: reconcile.Course{Runs: []reconcile.Run{{Attempt: 1}}}}); err != nil {
		t.Fatal(err)
	}
	first := loaded(t, r, "1")
	first.Runs[0].Read, first.Detail = true, "not saved"
	first.Restarts = append(first.Restarts, time.Time{})
	if again := loaded(t, r, "1"); again.Runs[0].Read || again.Detail != "" || len(again.Restarts) != 0 {
		t.Errorf("what was never saved is there: %+v", again)
	}
	// As when another controller wrote it and this one took its store over.
	if err := store.PutJSON(bucketRecords, "1", &reconcile.Record{Identity: reconcile.Identity{Job: "1"}, Phase: reconcile.Ended, Detail: "by another"}); err != nil {
		t.Fatal(err)
	}
	if got := loaded(t, r, "1"); got.Detail != "by another" || len(got.Runs) != 0 {
		t.Errorf("what another wrote is not there: %+v", got)
	}
	if len(r.decoded) != 0 {
		t.Errorf("%d stories are kept that are over", len(r.decoded))
	}
	if err := store.PutJSON(bucketRecords, "1", "no record"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Load(t.Context(), "1"); !errors.Is(err, knowledge.ErrDamaged) {
		t.Errorf("of what is no record: %v", err)
	}
	r.digests["1"] = digest{phase: reconcile.Ended}
	if n, err := r.prune(time.Now(), 0, func(driver.JobID) bool { return true }); n != 1 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
	if err := r.Save(t.Context(), &reconcile.Record{Identity: reconcile.Identity{Job: "2"}}); err != nil {
		t.Fatal(err)
	}
	if all, err := r.All(t.Context()); err != nil || len(all) != 1 || all[0].Job != "2" {
		t.Errorf("beside what is no record there are %v, %v", all, err)
	}
}

func TestWhoAsksTooOftenKeepsNoOneElseFromAHeadStart(t *testing.T) {
	t.Parallel()
	store, _ := stored(t)
	of := func(owner, id string) reconcile.Offer {
		return reconcile.Offer{ID: id, Kind: tuning.JobKind{Owner: owner}, At: time.Now()}
	}
	err := store.Update(func(tx *knowledge.Tx) (err error) {
		for i := range mostOffers {
			err = errors.Join(err, tx.PutJSON(bucketOffers, strconv.Itoa(i), of("alice", strconv.Itoa(i))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[string]error{"alice": reconcile.ErrNoOffer, "bob": nil} {
		if err := (offers{store}).Put(t.Context(), of(owner, "one more")); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", owner, err, want)
		}
	}
}

type listedJobs struct {
	driver.Driver

	jobs []driver.Job
}

func (l listedJobs) List(context.Context) ([]driver.Job, error) { return l.jobs, nil }

// Some schedulers report a requeue as a submission.
func TestTheReportHasTheTimeOfARequeuedJob(t *testing.T) {
	t.Parallel()
	_, r := stored(t)
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, id := range []driver.JobID{"requeued", "reused"} {
		rec := &reconcile.Record{Identity: reconcile.Identity{Job: id, Submitted: at(1)}, Phase: reconcile.Ended, Course: reconcile.Course{Ended: at(7202), Runs: []reconcile.Run{{Attempt: 1}, {Attempt: 2}}}}
		if err := r.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	job := driver.Job{ID: "requeued", Submitted: at(3000), State: driver.Succeeded, Ended: at(7202), Resources: driver.Resources{Cores: 2}, Attempts: []driver.Attempt{
		{Number: 1, Started: at(2), Ended: at(1802)}, {Number: 2, Started: at(5402), Ended: at(7202)},
	}}
	another := driver.Job{ID: "reused", Submitted: at(8000), State: driver.Pending}
	d := &Daemon{records: r, services: &services{driver: listedJobs{jobs: []driver.Job{job, another}}}}
	rows, err := d.reportRows(t.Context(), func(string) bool { return true }, at(9000))
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	for _, row := range rows {
		if hours, known := row.CoreHours(), row.Job == "requeued"; known != (hours != nil) || known && *hours != 2 {
			t.Errorf("%s: %v core-hours", row.Job, hours)
		}
	}
}

func TestTheSignalsThatEndAJobAreThoseThatWereSeenLast(t *testing.T) {
	t.Parallel()
	masked := func(mask float64) api.Sample {
		return api.Sample{Values: map[string]float64{api.ColFatalSignals: mask}}
	}
	deadly, handled, ended := masked(1<<(unix.SIGUSR1-1)|1<<(unix.SIGKILL-1)), masked(1<<(unix.SIGKILL-1)), api.Sample{}
	for name, tc := range map[string]struct {
		samples []api.Sample
		want    bool
	}{
		"no handler":               {[]api.Sample{deadly}, true},
		"a handler that came late": {[]api.Sample{deadly, handled}, false},
		"a job that has ended":     {[]api.Sample{deadly, ended, ended}, true},
		"an exporter without them": {[]api.Sample{ended}, false},
		"no sample":                {nil, false},
	} {
		if got := fatal(tc.samples, unix.SIGUSR1); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
