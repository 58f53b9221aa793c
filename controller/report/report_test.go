package report_test

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func noon() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// job is one that ran ten minutes on two cores, ending the given minutes after noon.
func job(id string, minute int, change ...func(*report.Row)) report.Row {
	end := noon().Add(time.Duration(minute) * time.Minute)
	start := end.Add(-10 * time.Minute)
	r := report.Row{
		Job: id, Name: "train", User: "alice", Account: "physics", Partition: "cpu", State: "succeeded", Succeeded: true,
		Kind:      tuning.JobKind{Owner: "alice", Name: "train", Fingerprint: "f1"},
		Submitted: start.Add(-time.Minute), Ended: end, Total: 4,
		Spans:  []report.Span{{Start: start, End: end, Cores: 2}},
		Policy: tuning.Policy{Mode: tuning.Apply, Objective: tuning.Time},
		Own:    tuning.Settings{"cores": tuning.Number(2)},
	}
	r.Epochs = epochs(r.Own, start, 150, 300, "rapl")
	for _, f := range change {
		f(&r)
	}
	return r
}

// epochs are four of equal length; no source: without joules.
func epochs(s tuning.Settings, start time.Time, seconds, joules float64, source string) []tuning.Epoch {
	var out []tuning.Epoch
	for n := range 4 {
		e := tuning.Epoch{
			Number: n + 1, Attempt: 1, Settings: s, Warmup: n == 0, Source: source,
			Start: start.Add(time.Duration(float64(n) * seconds * float64(time.Second))),
			End:   start.Add(time.Duration(float64(n+1) * seconds * float64(time.Second))),
		}
		if source != "" {
			j := tuning.Joules(joules)
			e.Joules = &j
		}
		out = append(out, e)
	}
	return out
}

func untuned(r *report.Row) { r.Control = true }

// tuned is a job whose epochs took the given share of an untuned one's.
func tuned(share float64) func(*report.Row) {
	return func(r *report.Row) {
		r.Tuned = true
		start := r.Spans[0].Start
		r.Epochs = epochs(tuning.Settings{"cores": tuning.Number(4)}, start, 150*share, 300*share, "rapl")
	}
}

func unmeasured(r *report.Row) { r.Epochs = epochs(r.Own, noon(), 150, 0, "") }
func modelled(r *report.Row)   { r.Epochs = epochs(r.Own, noon(), 150, 200, tuning.Modelled) }

func by(user, account string) func(*report.Row) {
	return func(r *report.Row) { r.User, r.Account, r.Kind.Owner = user, account, user }
}

func query(by report.By) report.Query {
	return report.Query{Since: noon().Add(-24 * time.Hour), Until: noon().Add(48 * time.Hour), By: by}
}

// site is a mixture of everything that a table has to show.
func site() []report.Row {
	rows := []report.Row{
		job("a1", 0), job("a2", 20, modelled), job("b1", 40, by("bob", "")), job("b2", 60, by("bob", ""), unmeasured),
		job("b3", 3000-60*20, by("bob", ""), func(r *report.Row) { r.Name, r.State, r.Succeeded = "up\x1b[31m", "failed", false }),
		job("c1", 80, by("carol", "physics"), func(r *report.Row) { r.Spans = nil }),
		job("c2", 90, by("carol", "physics"), func(r *report.Row) {
			r.Ended, r.State, r.Succeeded, r.Restarts, r.Probes = time.Time{}, "running", false, 1, 2
			r.Spans[0].Cores = 0
		}),
		job("old", -2000),
	}
	for i := range 10 {
		energy := func(r *report.Row) { r.Policy.Objective, r.Name, r.Kind.Name = tuning.Energy, "solve", "solve" }
		rows = append(rows,
			job(fmt.Sprintf("t%d", i), 100+i, energy, tuned(0.70+0.005*float64(i))), job(fmt.Sprintf("u%d", i), 100+i, energy, untuned))
	}
	return append(rows, job("alone", 200, tuned(0.5)))
}

func TestTablesAsPeopleAndProgramsReadThem(t *testing.T) {
	t.Parallel()
	for _, by := range report.Bys() {
		table := report.Build(site(), query(by))
		table.Notes = []string{"A note."}
		fixtures.Golden(t, *update, filepath.Join("testdata", "by-"+string(by)+".txt"), report.Text(table))
		fixtures.Golden(t, *update, filepath.Join("testdata", "by-"+string(by)+".csv"), report.CSV(table))
		head, _, _ := strings.Cut(report.CSV(table), "\n")
		if columns := strings.Split(head, ","); len(slices.Compact(slices.Sorted(slices.Values(columns)))) < len(columns) {
			t.Errorf("two columns of one name: %s", head)
		}
	}
	empty := query(report.ByUser)
	fixtures.Golden(t, *update, filepath.Join("testdata", "empty.txt"), report.Text(report.Build(nil, empty)))
}

func TestJoulesOfAPartOfTheNodesSaySo(t *testing.T) {
	t.Parallel()
	of := func(source string) func(*report.Row) {
		return func(r *report.Row) {
			for i := range r.Epochs {
				r.Epochs[i].Source = tuning.Part(source, 4)
			}
		}
	}
	total := report.Build([]report.Row{job("1", 0, of("rapl")), job("2", 1, modelled, of(tuning.Modelled))}, query(report.ByJob))
	measured, sources := total.Total.Joules(false)
	computed, model := total.Total.Joules(true)
	if *measured != 1200 || sources != "rapl, 1 of 4 nodes" || *computed != 800 || model != "modelled, 1 of 4 nodes" {
		t.Errorf("measured %g (%s), computed %g (%s)", *measured, sources, *computed, model)
	}
	if text := report.Text(total); !strings.Contains(text, "800 J (modelled, 1 of 4 nodes)") {
		t.Error(text)
	}
}

func TestTheJoulesOfAJobThatLacksAnEpochAreUnknown(t *testing.T) {
	t.Parallel()
	hole := func(r *report.Row) { r.Epochs = slices.Delete(slices.Clone(r.Epochs), 1, 2) }
	if l := report.Build([]report.Row{job("1", 0), job("2", 1, hole)}, query(report.ByJob)).Total; l.NoEnergy != 1 || *must(l.Joules(false)) != 1200 {
		t.Errorf("%+v", l)
	}
}

func must(joules *float64, _ string) *float64 { return joules }

func TestNothingThatAUserNamedReachesTheTerminalUnprinted(t *testing.T) {
	t.Parallel()
	if text := report.Text(report.Build(site(), query(report.ByJob))); strings.ContainsAny(text, "\x1b\t") {
		t.Errorf("%q", text)
	}
}

// priced gives a job a tariff.
func priced(t tuning.Tariff) func(*report.Row) { return func(r *report.Row) { r.Policy.Tariff = t } }

func coreHours(v float64) []report.Cost { return []report.Cost{{Unit: "core-hours", Amount: v}} }

// TestCostsAsPeopleAndProgramsReadThem: jobs that are charged in different units are
// never added up, and energy that has a price and was not measured is said to be free.
func TestCostsAsPeopleAndProgramsReadThem(t *testing.T) {
	t.Parallel()
	euros := tuning.Tariff{CoreHour: 3, GiBHour: 6, GPUHour: 12, KWh: 3600, Unit: "EUR"}
	holds := func(r *report.Row) { r.Spans[0].Memory, r.Spans[0].GPUs = 2<<30, 1 }
	model := euros
	model.Modelled = true
	rows := []report.Row{
		job("cores", 0), job("all", 10, priced(euros), holds), job("nodes", 20, priced(euros.Fixed(tuning.Settings{"cores": tuning.Number(1)}))),
		job("unmeasured", 30, priced(euros), unmeasured), job("modelled", 40, priced(euros), modelled), job("enforced", 50, priced(model), modelled),
		job("francs", 60, priced(tuning.Tariff{GPUHour: 5, Unit: "CHF"})),
		job("lost", 70, priced(euros), func(r *report.Row) { r.Spans[0].Cores = 0 }),
	}
	table := report.Build(rows, query(report.ByJob))
	fixtures.Golden(t, *update, filepath.Join("testdata", "priced.txt"), report.Text(table))
	fixtures.Golden(t, *update, filepath.Join("testdata", "priced.csv"), report.CSV(table))
}

func TestMissingNumbersAreMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		rows []report.Row
		want report.Line
	}{
		{
			"a job without joules has none",
			[]report.Row{job("1", 0, unmeasured)},
			report.Line{Jobs: 1, Seconds: new(600.0), CoreHours: new(1. / 3), Cost: coreHours(1. / 3), NoEnergy: 1, Epochs: new(4), Restarts: new(0), Probes: new(0)},
		},
		{
			"one epoch without joules takes them from its job",
			[]report.Row{job("1", 0, func(r *report.Row) { r.Epochs[2].Joules = nil })},
			report.Line{Jobs: 1, Seconds: new(600.0), CoreHours: new(1. / 3), Cost: coreHours(1. / 3), NoEnergy: 1, Epochs: new(4), Restarts: new(0), Probes: new(0)},
		},
		{
			"a job whose run time is unknown",
			[]report.Row{job("1", 0, func(r *report.Row) { r.Spans = nil })},
			report.Line{Jobs: 1, NoSeconds: 1, NoCoreHours: 1, NoCost: 1, Energy: []report.Energy{{Source: "rapl", Joules: 1200}}, Epochs: new(4), Restarts: new(0), Probes: new(0)},
		},
		{
			"measured and modelled joules are not added up",
			[]report.Row{job("1", 0), job("2", 1, modelled), job("3", 2)},
			report.Line{
				Jobs: 3, Seconds: new(1800.0), CoreHours: new(1.0), Cost: coreHours(1), Epochs: new(12), Restarts: new(0), Probes: new(0),
				Energy: []report.Energy{{Source: "modelled", Joules: 800}, {Source: "rapl", Joules: 2400}},
			},
		},
		{
			"what a job used outside its epochs is its own",
			[]report.Row{job("1", 0, func(r *report.Row) {
				r.Outside = []tuning.Epoch{{Attempt: 1, Joules: new(tuning.Joules(800)), Source: "rapl"}}
			}, priced(tuning.Tariff{KWh: 3.6e6, Unit: "EUR"}))},
			report.Line{
				Jobs: 1, Seconds: new(600.0), CoreHours: new(1. / 3), Cost: []report.Cost{{Unit: "EUR", Amount: 2000}}, Epochs: new(4), Restarts: new(0), Probes: new(0),
				Energy: []report.Energy{{Source: "rapl", Joules: 2000}},
			},
		},
		{
			"an attempt on an unknown number of cores",
			[]report.Row{job("1", 0, func(r *report.Row) { r.Spans[0].Cores = 0 }), job("2", 0)},
			report.Line{
				Jobs: 2, Seconds: new(1200.0), CoreHours: new(1. / 3), Cost: coreHours(1. / 3), NoCoreHours: 1, NoCost: 1, Epochs: new(8), Restarts: new(0), Probes: new(0),
				Energy: []report.Energy{{Source: "rapl", Joules: 2400}},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Key = "total"
			got := report.Build(c.rows, query(report.ByUser)).Total
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreUnexported(report.Line{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func forgotten(r *report.Row) {
	r.Forgotten, r.Tuned, r.Control, r.Policy, r.Own, r.Epochs, r.Total = true, false, true, tuning.Policy{}, nil, nil, 0
}

func TestWhatWasDoneToAForgottenJobIsUnknown(t *testing.T) {
	t.Parallel()
	one := report.Build([]report.Row{job("1", 0, forgotten)}, query(report.ByUser))
	want := report.Line{Key: "total", Jobs: 1, Seconds: new(600.0), CoreHours: new(1. / 3), NoEnergy: 1, NoCost: 1, Forgotten: 1}
	if diff := cmp.Diff(want, one.Total, cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreUnexported(report.Line{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(one.Notes) != 1 || !strings.HasPrefix(one.Notes[0], "The details of 1 job of the period are gone") {
		t.Errorf("notes %q", one.Notes)
	}
	if text := report.Text(one); !strings.Contains(text, "alice  1     -      -              10 min  0.33        -       -         -         -       -       -") {
		t.Errorf("%s", text)
	}
	if lines := strings.Split(report.CSV(one), "\n"); !strings.HasSuffix(lines[1], ",,,,,,0,0,1,1,,0,,,1,0,") {
		t.Errorf("%q", lines[1])
	}
	many := report.Build([]report.Row{job("1", 0, forgotten), job("2", 1, forgotten), job("3", 2, tuned(.5)), job("old", -2000, forgotten)}, query(report.ByUser))
	if l := many.Total; l.Jobs != 3 || l.Tuned != 1 || l.Untuned != 0 || l.Epochs == nil || *l.Epochs != 4 || l.Forgotten != 2 {
		t.Errorf("total %+v", l)
	}
	if len(many.Notes) != 1 || !strings.HasPrefix(many.Notes[0], "The details of 2 jobs of the period are gone") {
		t.Errorf("notes %q", many.Notes)
	}
}

func TestWhatTuningSavedIsAShareOfWhatJobsAreTunedFor(t *testing.T) {
	t.Parallel()
	paid := func(own, epochs float64) func(*report.Row) {
		return func(r *report.Row) { r.Toll = &tuning.Toll{Seconds: 7, Own: own, Epochs: epochs} }
	}
	table := report.Build([]report.Row{
		job("half its cost, in a little more time", 1, tuned(1), paid(100, -2)), job("a quarter more of a short one", 2, tuned(1), paid(10, 1)),
		job("untuned", 3, untuned), job("unknown", 4, tuned(1)), job("running", 5, tuned(1), func(r *report.Row) { r.Ended = time.Time{} }),
	}, query(report.ByUser))
	line, text := table.Total, report.Text(table)
	if want := (2*100 - 1*10) / float64(4*100+4*10); line.NetShare == nil || math.Abs(*line.NetShare-want) > 1e-12 || *line.Net != -14 || !strings.Contains(text, "43.2 % in 2 of 4") {
		t.Errorf("net %v s and a share of %v, want -14 and %g:\n%s", line.Net, line.NetShare, want, text)
	}
	if got := report.Build([]report.Row{job("untuned", 1, untuned)}, query(report.ByUser)).Total.NetShare; got != nil {
		t.Errorf("an untuned job saved %g", *got)
	}
}

func TestASmallAmountIsNotNothing(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]report.Cost{
		"0.00 EUR": {Unit: "EUR"}, "0.0013 core-hours": {Unit: "core-hours", Amount: 0.00127}, "0.33 EUR": {Unit: "EUR", Amount: 1. / 3}, "12.20 EUR": {Unit: "EUR", Amount: 12.2},
	} {
		if got := c.String(); got != want {
			t.Errorf("%g is %q, want %q", c.Amount, got, want)
		}
	}
}
