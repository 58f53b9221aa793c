package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// said is a scheduler that shows what a job said.
type said struct {
	driver.Driver

	text string
}

func (s said) Logs(context.Context, driver.JobID, int64) (io.ReadCloser, error) {
	return struct {
		*strings.Reader
		io.Closer
	}{strings.NewReader(s.text), io.NopCloser(nil)}, nil
}

func TestEpochsThatNoExporterSawAreReadFromTheOutputOfAJobThatEnded(t *testing.T) {
	at := time.Unix(1000, 0)
	seen := tuning.Epoch{Number: 2, Attempt: 1, Start: at, End: at.Add(time.Second), Joules: new(tuning.Joules(7)), Source: "rapl"}
	for _, tt := range []struct {
		name   string
		epochs []tuning.Epoch
		text   string
		want   []int
	}{
		{"those after the last that was seen", []tuning.Epoch{seen}, "epoch 1/5 acc 0.1\nepoch 2/5 acc 0.2\nepoch 3/5 acc 0.3\nepoch 4/5 acc 0.4\n", []int{3, 4}},
		{"all where none was seen", nil, "hello\nepoch 1/5 acc 0.3\nepoch 2/5 acc 0.4\n", []int{1, 2}},
		{"each once, where an attempt did some again", []tuning.Epoch{seen}, "epoch 3/5 acc 0.3\nepoch 3/5 acc 0.4\n", []int{3}},
		{"those behind a progress bar", nil, strings.Repeat("\r 99%|###", 1<<13) + "\repoch 1/5 acc 0.3\n", []int{1}},
		{"those at the end of a long output", nil, "epoch 1/5 acc 0.3\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", mostOutput>>10) + "epoch 2/5 acc 0.4", []int{2}},
		{"none where all were seen", []tuning.Epoch{{Number: 5, Attempt: 1}}, "epoch 6/5 acc 0.3\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := trialJobs{&Daemon{services: &services{driver: said{text: tt.text}, log: slog.New(slog.DiscardHandler)}}}
			rec := &reconcile.Record{}
			rec.Policy.Progress.Pattern, rec.Total, rec.Epochs = `epoch (?P<epoch>\d+)/(?P<total>\d+) acc (?P<quality>\S+)`, 5, tt.epochs
			var got []int
			for _, e := range d.unseen(t.Context(), rec, driver.Job{Ended: at.Add(time.Minute), Attempt: 1}) {
				got = append(got, e.Number)
				if e.Quality == nil || !e.End.Equal(at.Add(time.Minute)) || e.Joules != nil || e.Source != "" {
					t.Errorf("epoch %+v", e)
				}
			}
			if len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] {
				t.Errorf("epochs %v, want %v", got, tt.want)
			}
		})
	}
}

// What a scheduler did to a job is not its owner's wish: the trial goes on in another.
func TestHowAJobEndedSaysWhatBecomesOfItsTrial(t *testing.T) {
	for _, tt := range []struct {
		state  driver.State
		detail string
		want   searcher.End
	}{
		{driver.Succeeded, "", searcher.Succeeded},
		{driver.Failed, "failed: NonZeroExitCode", searcher.Broken},
		{driver.NotStarted, "", searcher.Broken},
		{driver.MemoryExceeded, "out of memory", searcher.NoMemory},
		{driver.TimeExceeded, "timeout", searcher.NoTime},
		{driver.Cancelled, "cancelled", searcher.Cancelled},
		{driver.Cancelled, "preempted", searcher.Lost},
		{driver.Cancelled, driver.DetailForgotten, searcher.Lost},
		{driver.Lost, "node fail", searcher.Lost},
		{"", "", searcher.Lost},
	} {
		if got := endOf(tt.state, tt.detail); got != tt.want {
			t.Errorf("%s, %q: %s, want %s", tt.state, tt.detail, got, tt.want)
		}
	}
}

func TestASearchSeesThatTheSchedulerHoldsAJob(t *testing.T) {
	t.Parallel()
	_, r := stored(t)
	d := trialJobs{&Daemon{records: r}}
	if err := r.Save(t.Context(), &reconcile.Record{Identity: reconcile.Identity{Job: "7"}, Course: reconcile.Course{State: driver.Pending, Held: "it left"}}); err != nil {
		t.Fatal(err)
	}
	if v, err := d.See(t.Context(), "7"); err != nil || v.Held != "it left" || v.Over {
		t.Errorf("%+v, %v", v, err)
	}
}

// unsure is a scheduler that does not know yet whether a submission had its effect.
type unsure struct{ driver.Driver }

func (unsure) List(context.Context) ([]driver.Job, error) { return nil, nil }

func (unsure) Find(context.Context, driver.RequestID) (driver.JobID, error) {
	return "", driver.ErrUnknown
}

func TestAJobThatMayComeYetIsNotTakenForNone(t *testing.T) {
	t.Parallel()
	d := trialJobs{&Daemon{services: &services{driver: unsure{}}}}
	if id, err := d.Find(t.Context(), "alice/search-s/1/1"); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("a search that ends finds %q, %v; want %v", id, err, driver.ErrUnknown)
	}
}

func TestTheVerdictOfATrialsJobSaysWhyItsSearchEndedIt(t *testing.T) {
	const verdict, detail = "cancelled (epoch 4 of 9): killed by SIGTERM", "cancelled, killed by SIGTERM"
	for _, tt := range []struct {
		name   string
		state  driver.State
		job    driver.JobID
		trial  searcher.State
		reason string
		want   string
	}{
		{"at a rung", driver.Cancelled, "local-2", searcher.Paused, "rank 2 of 4 after 3 epochs", "cancelled (epoch 4 of 9) by its search: paused, rank 2 of 4 after 3 epochs"},
		{"after all epochs of a trial", driver.Cancelled, "local-2", searcher.Done, "", "cancelled (epoch 4 of 9) by its search: done"},
		{"a job that another went on from", driver.Cancelled, "local-1", searcher.Paused, "rank 2 of 4 after 3 epochs", "cancelled (epoch 4 of 9) by its search: another job of the trial went on"},
		{"its owner cancelled it", driver.Cancelled, "local-2", searcher.Stopped, detail, verdict},
		{"it failed", driver.Failed, "local-2", searcher.Failed, "exit status 3", verdict},
	} {
		rec := &reconcile.Record{Identity: reconcile.Identity{Job: tt.job}, Course: reconcile.Course{State: tt.state}, Detail: detail}
		trial := &trials.Trial{Trial: searcher.Trial{State: tt.trial, Reason: tt.reason}, Jobs: []driver.JobID{"local-1", "local-2"}}
		if got := bySearch(verdict, rec, trial); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
