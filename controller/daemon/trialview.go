package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	output "pitchpipe/exporter/api/progress"
)

// See implements trials.Jobs. A record that did not change since the last look is not read again.
func (d trialJobs) See(ctx context.Context, id driver.JobID) (trials.View, error) {
	last := d.records.digest(id).seen
	if last != nil && *last != nil {
		return **last, nil
	}
	v, err := d.see(ctx, id)
	if last != nil && err == nil && !v.Over {
		*last = &v
	}
	return v, err
}

func (d trialJobs) see(ctx context.Context, id driver.JobID) (trials.View, error) {
	rec, err := d.records.Load(ctx, id)
	if err != nil && !errors.Is(err, reconcile.ErrNoRecord) {
		return trials.View{}, err
	}
	if rec == nil { // not seen yet
		_, err := d.driver.Get(ctx, id)
		if errors.Is(err, driver.ErrNotFound) {
			return trials.View{Over: true, End: searcher.Lost, Detail: "its scheduler forgot it"}, nil
		}
		d.queue.Add(id)
		return trials.View{}, err
	}
	v := trials.View{Epochs: rec.Epochs, Total: rec.Total, Started: rec.Started, Limit: rec.Limit, Held: rec.Held, Own: rec.Own, Over: rec.Phase.Over(), Request: rec.Requested}
	if waits := rec.State == driver.Pending && rec.Started.IsZero(); waits || rec.State == driver.Running {
		v.Cores = rec.Settings(math.MaxInt)[tuning.Cores].Float()
	}
	if v.Over {
		job, err := d.driver.Get(ctx, id)
		if err != nil && !errors.Is(err, driver.ErrNotFound) {
			return v, err
		}
		if err == nil && !rec.Of(job) { // the record is that of an earlier job with the id
			d.queue.Add(id)
			return trials.View{Request: job.Request}, nil
		}
		end, _ := tuning.First(rec.History, func(e reconcile.Entry) bool { return e.To.Over() })
		v.End, v.Detail = endOf(rec.State, end.Detail), end.Detail
		row := rowOf(rec)
		if err == nil {
			v.Epochs = append(slices.Clip(v.Epochs), d.unseen(ctx, rec, job)...)
			row = seen(row, job, time.Now())
		}
		if v.End == searcher.Succeeded && len(v.Epochs) == 0 {
			v.Detail = searcher.Unseen + ": the exporter has to run, and the progress pattern has to match a line for each epoch"
		}
		v.Hours = row.CoreHours()
		if ran := row.Seconds(); ran != nil {
			v.Ran = *ran
		}
	}
	return v, nil
}

func endOf(s driver.State, detail string) searcher.End {
	if strings.HasPrefix(detail, driver.DetailPreempted) || strings.HasPrefix(detail, driver.DetailForgotten) {
		return searcher.Lost
	}
	return cmp.Or(map[driver.State]searcher.End{
		driver.Succeeded: searcher.Succeeded, driver.MemoryExceeded: searcher.NoMemory, driver.TimeExceeded: searcher.NoTime,
		driver.Cancelled: searcher.Cancelled, driver.Lost: searcher.Lost, "": searcher.Lost,
	}[s], searcher.Broken)
}

// mostOutput is how much of a job's output is read for epochs that were missed: its end, where the scheduler keeps a file.
const mostOutput = 64 << 20

// unseen are the epochs at the end of a job that its output shows and no exporter saw: the controller was away, or the
// listener was ended with the job. When each ended is unknown, so that all end with the job, and what each used is too.
func (d trialJobs) unseen(ctx context.Context, rec *reconcile.Record, job driver.Job) (out []tuning.Epoch) {
	p := rec.Policy.Progress
	if p.Pattern == "" || p.File != "" || rec.Total > 0 && rec.Done() >= rec.Total {
		return nil
	}
	last := tuning.Epoch{Number: rec.Done(), Attempt: job.Attempt, Settings: rec.Own, Start: job.Ended, End: job.Ended}
	if n := len(rec.Epochs); n > 0 {
		last.Attempt, last.Settings = rec.Epochs[n-1].Attempt, rec.Epochs[n-1].Settings
	}
	pattern, _ := regexp.Compile(p.Pattern) // nil is none
	m, err := output.NewMatcher(pattern, p.Total)
	if err != nil {
		return nil
	}
	text, err := d.driver.Logs(ctx, job.ID, 0)
	if err == nil {
		defer func() { _ = text.Close() }()
		if f, ok := text.(io.Seeker); ok {
			_, _ = f.Seek(-mostOutput, io.SeekEnd) // it fails where the output is shorter, which is then read from its beginning
		}
		err = output.Lines(ctx, io.MultiReader(io.LimitReader(text, mostOutput), strings.NewReader("\n")), func(line []byte) {
			if r, ok := m.Match(string(line)); ok && r.Epoch > last.Number {
				last.Number, last.Loss, last.Quality, last.Diverged = r.Epoch, r.Loss, r.Quality, r.Diverged
				out = append(out, last)
			}
		})
	}
	if err != nil {
		d.log.Info("the output of a trial cannot be read", "job", job.ID, "error", err)
	}
	return out
}
