package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

const reportPeriod = 30 * 24 * time.Hour

func (r request) report() (any, error) {
	q, err := reportQuery(r.URL.Query(), time.Now())
	if err != nil {
		return nil, err
	}
	rows, err := r.d.reportRows(r.Context(), r.who.May, q.Until)
	if err != nil {
		return nil, err
	}
	t := report.Build(rows, q)
	if (q.By == report.ByAccount || q.By == report.ByPartition) && !r.d.driver.Capabilities().Accounts {
		t.Notes = append(t.Notes, "Partitions and accounts are those that the job files name: this scheduler does not verify them.")
	}
	if q.Since.Before(q.Until.Add(-keepRecords)) {
		t.Notes = append(t.Notes, fmt.Sprintf("Jobs that ended more than %d days ago may be forgotten: the period reaches back further.", int(keepRecords.Hours()/24)))
	}
	return t, nil
}

func reportQuery(asked url.Values, now time.Time) (report.Query, error) {
	q := report.Query{Since: now.Add(-reportPeriod), Until: now, By: cmp.Or(report.By(asked.Get("by")), report.ByJob)}
	if text := asked.Get("since"); text != "" {
		ago, err := tuning.ParseDuration(text)
		if err != nil {
			return q, fmt.Errorf("%w: since: %w", errInput, err)
		}
		q.Since = now.Add(-ago)
	}
	if !slices.Contains(report.Bys(), q.By) {
		return q, fmt.Errorf("%w: by: %q; want one of %s", errInput, q.By, strings.Trim(strings.ReplaceAll(fmt.Sprint(report.Bys()), " ", ", "), "[]"))
	}
	return q, nil
}

// reportRows joins the record of each job with what its scheduler still knows. A job that
// was not seen yet has no row.
func (d *Daemon) reportRows(ctx context.Context, may func(owner string) bool, now time.Time) ([]report.Row, error) {
	jobs, err := d.driver.List(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[driver.JobID]driver.Job, len(jobs))
	for _, j := range jobs {
		known[j.ID] = j
	}
	records, err := d.records.owned(may)
	if err != nil {
		return nil, err
	}
	rows := []report.Row{}
	for _, r := range records {
		row := rowOf(r)
		// A scheduler that starts to count again gives the id to another job.
		if job, ok := known[r.Job]; ok && r.Of(job) {
			row = seen(row, job, now)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func seen(row report.Row, job driver.Job, now time.Time) report.Row {
	row.Account, row.Partition = job.Account, job.Partition
	row.Spans = spans(job, now)
	row.Ended = cmp.Or(row.Ended, job.Ended)
	row.State, row.Succeeded = string(job.State), job.State == driver.Succeeded
	return row
}

func rowOf(r *reconcile.Record) report.Row {
	row := report.Row{
		Job: string(r.Job), Name: r.Name, User: r.Owner, Kind: r.Kind, State: string(r.State),
		Succeeded: r.State == driver.Succeeded, Submitted: r.Submitted, Ended: r.Ended, Policy: r.Policy, Own: r.Own,
		Total: r.Total, Epochs: r.Epochs, Outside: r.Outside(), Restarts: r.Restarted(), Probes: len(r.Probed),
		Control: r.Control, Forgotten: r.Pruned, Toll: r.Toll,
		Tuned: r.Reason == tuning.ReasonSignalEnded, // for a setting that it did not come to
	}
	for _, run := range r.Runs {
		if run.Action == tuning.Probe {
			row.Probed = append(row.Probed, run.Attempt)
		}
		if run.Action != tuning.Hold && !run.Settings.Equal(r.Own) {
			row.Tuned = true
		}
	}
	if row.Ended.IsZero() && r.Phase.Over() && len(r.History) > 0 {
		row.Ended = r.History[len(r.History)-1].At // its scheduler forgot it, which was noticed then
	}
	if job := jobOf(r); len(job.Attempts) > 0 {
		row.Spans = spans(job, job.Ended)
	}
	return row
}

// jobOf is a job that its scheduler has forgotten, as its record has it.
func jobOf(r *reconcile.Record) driver.Job {
	held := r.Own
	job := driver.Job{
		ID: r.Job, Request: r.Requested, Name: r.Name, Owner: r.Owner, State: r.State, ExitCode: -1, Submitted: r.Submitted, Started: r.Started,
		Ended: r.Ended, Attempt: tuning.Last(r.Runs).Attempt, Attempts: r.Attempts,
	}
	// A record of an earlier version has the time only of a single attempt.
	if len(r.Attempts) == 0 && len(r.Runs) == 1 {
		held, job.Attempts = r.Runs[0].Settings, []driver.Attempt{{Number: job.Attempt, Started: r.Started, Ended: r.Ended, ExitCode: -1}}
	}
	if len(job.Attempts) == 0 { // its end was not seen: it waited until then
		job.Ended = cmp.Or(r.Ended, r.OverAt())
	}
	job.Resources = driver.Resources{Cores: held[tuning.Cores].Int(), MemoryBytes: int64(held[tuning.Memory].Float()), GPUs: held[tuning.GPUs].Int()}
	return job
}

// spans are the times of the attempts, or nil where one is unknown: a missing time would
// make an attempt run for centuries, or not at all.
func spans(job driver.Job, now time.Time) []report.Span {
	out := []report.Span{}
	for i, a := range job.Attempts {
		// An allocation may be more than a task asked for: whole nodes, or many tasks.
		s := report.Span{Start: a.Started, End: a.Ended, Cores: cmp.Or(a.CPUs, a.Change.Cores, job.Resources.Cores), GPUs: job.Resources.GPUs}
		s.Memory = tuning.Bytes(cmp.Or(a.Change.MemoryBytes, job.Resources.MemoryBytes))
		if s.End.IsZero() && i == len(job.Attempts)-1 {
			s.End = now
			if job.State.Ended() {
				s.End = job.Ended
			}
		}
		if s.Start.IsZero() || s.End.IsZero() {
			return nil
		}
		out = append(out, s)
	}
	return out
}
