package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// By is what the lines of a table are summed over.
type By string

// What lines can be summed over.
const (
	ByJob       By = "job"
	ByUser      By = "user"
	ByAccount   By = "account"
	ByPartition By = "partition"
	ByKind      By = "kind"
	ByDay       By = "day"   // in which the job ended, UTC
	ByMonth     By = "month" // likewise
)

// Bys lists what lines can be summed over.
func Bys() []By { return []By{ByJob, ByUser, ByAccount, ByPartition, ByKind, ByDay, ByMonth} }

// Unknown is the key of what has none, such as a job without an account.
const Unknown = "-"

// Query says what to report. A job belongs to the period if it ended in it or
// has not ended yet.
type Query struct {
	Since, Until time.Time
	By           By
}

// Table is a report.
type Table struct {
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	By      By        `json:"by"`
	Lines   []Line    `json:"lines"`
	Total   Line      `json:"total"`
	Savings []Saving  `json:"savings"`
	Notes   []string  `json:"notes,omitempty"` // what a reader has to know of the numbers
}

// Line is one job, or the sum of several. A sum over jobs leaves out those that
// lack the number and says how many they are; null: all do.
type Line struct {
	Key       string   `json:"key"`
	Name      string   `json:"name,omitempty"`  // of a single job
	User      string   `json:"user,omitempty"`  // likewise
	State     string   `json:"state,omitempty"` // likewise
	Jobs      int      `json:"jobs"`
	Running   int      `json:"running"`       // that have not ended: their numbers grow
	Tuned     int      `json:"tuned"`         // of those that are not forgotten
	Untuned   int      `json:"untuned_share"` // drawn to stay untuned, likewise
	Seconds   *float64 `json:"seconds"`       // that attempts ran, waiting left out
	CoreHours *float64 `json:"core_hours"`    // cores that were allocated times hours
	Cost      []Cost   `json:"cost"`          // by unit; null: none is known
	Energy    []Energy `json:"energy"`        // of the epochs, by source, never added up over modelled and measured; null: none
	Restarts  *int     `json:"restarts"`
	Probes    *int     `json:"probes"`
	Epochs    *int     `json:"epochs"`
	Net       *float64 `json:"net_seconds"` // that tuning saved, below 0 lost, restarts and probes included; null: unknown
	NetShare  *float64 `json:"net_share"`   // likewise of what the jobs are tuned for, over what that takes untuned, by untuned time

	Forgotten   int `json:"jobs_forgotten"` // their details are gone: no restarts, probes, epochs
	NoSeconds   int `json:"jobs_without_seconds"`
	NoCoreHours int `json:"jobs_without_core_hours"`
	NoEnergy    int `json:"jobs_without_energy"` // an epoch was not measured, or there was none
	NoNet       int `json:"jobs_without_net"`    // that were tuned, and still run, or what they take untuned is unknown
	NoCost      int `json:"jobs_without_cost"`
	FreeEnergy  int `json:"jobs_with_cost_without_energy"` // which has a price, and was not measured throughout

	saved, untuned float64 // of NetShare, in seconds of the owners' settings
}

// Build sums the rows up. It needs no order of them.
func Build(rows []Row, q Query) Table {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.Job, b.Job))
	})
	t := Table{Since: q.Since, Until: q.Until, By: q.By, Lines: []Line{}, Savings: savings(rows, q), Total: Line{Key: "total"}}
	at := map[string]int{} // of a line, by its key
	for _, r := range rows {
		if !q.covers(r) {
			continue
		}
		key := q.By.key(r)
		i, known := at[key]
		if !known {
			i, at[key] = len(t.Lines), len(t.Lines)
			t.Lines = append(t.Lines, Line{Key: key})
		}
		l := &t.Lines[i]
		if q.By == ByJob {
			l.Name, l.User, l.State = r.Name, r.User, r.State
		}
		l.add(r)
		t.Total.add(r)
	}
	if q.By != ByJob { // jobs are in the order of their submission
		slices.SortFunc(t.Lines, func(a, b Line) int { return cmp.Compare(a.Key, b.Key) })
	}
	switch n := t.Total.Forgotten; n {
	case 0:
	case 1:
		t.Notes = append(t.Notes, "The details of 1 job of the period are gone: it is unknown whether and how it was tuned.")
	default:
		t.Notes = append(t.Notes, fmt.Sprintf("The details of %d jobs of the period are gone: it is unknown whether and how they were tuned.", n))
	}
	return t
}

func (q Query) covers(r Row) bool {
	if r.Ended.IsZero() {
		return !r.Submitted.After(q.Until)
	}
	return !r.Ended.Before(q.Since) && !r.Ended.After(q.Until)
}

func (by By) key(r Row) string {
	day, month := "running", "running"
	if !r.Ended.IsZero() {
		day, month = r.Ended.UTC().Format(time.DateOnly), r.Ended.UTC().Format("2006-01")
	}
	return cmp.Or(map[By]string{
		ByJob: r.Job, ByUser: r.User, ByAccount: r.Account, ByPartition: r.Partition, ByKind: r.Kind.String(), ByDay: day, ByMonth: month,
	}[by], Unknown)
}

func (l *Line) add(r Row) {
	l.Jobs++
	if r.Ended.IsZero() {
		l.Running++
	}
	if r.Forgotten {
		l.Forgotten++
	} else {
		l.addTuning(r)
	}
	if v := r.Seconds(); v != nil {
		l.Seconds = plus(l.Seconds, *v)
	} else {
		l.NoSeconds++
	}
	if v := r.CoreHours(); v != nil {
		l.CoreHours = plus(l.CoreHours, *v)
	} else {
		l.NoCoreHours++
	}
	switch c, free, ok := r.Cost(); {
	case !ok:
		l.NoCost++
	case free:
		l.FreeEnergy++
		fallthrough
	default:
		l.Cost = charge(l.Cost, c)
	}
	if v, ok := r.joules(); ok {
		l.Energy = add(l.Energy, v...)
	} else {
		l.NoEnergy++
	}
}

// addTuning adds what only the tuner knows.
func (l *Line) addTuning(r Row) {
	if r.Tuned {
		l.Tuned++
	}
	if r.Control {
		l.Untuned++
	}
	switch {
	case r.Toll != nil:
		l.Net = plus(l.Net, -r.Toll.Seconds)
		l.saved -= r.Toll.Epochs * r.Toll.Own
		if l.untuned += float64(tuning.Done(r.Epochs)) * r.Toll.Own; l.untuned > 0 {
			l.NetShare = new(l.saved / l.untuned)
		}
	case r.Tuned:
		l.NoNet++
	}
	l.Restarts, l.Probes, l.Epochs = plus(l.Restarts, r.Restarts), plus(l.Probes, r.Probes), plus(l.Epochs, tuning.Done(r.Epochs))
}

func plus[N int | float64](sum *N, v N) *N {
	if sum != nil {
		v += *sum
	}
	return &v
}

// Joules are those that were computed, or else those that were measured, with their sources joined by "+"; nil: none were.
func (l Line) Joules(modelled bool) (joules *float64, sources string) {
	var names []string
	for _, e := range l.Energy {
		if tuning.IsModelled(e.Source) == modelled {
			joules, names = plus(joules, e.Joules), append(names, e.Source)
		}
	}
	return joules, strings.Join(names, "+")
}
