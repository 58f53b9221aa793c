package stanza_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/jobfile/sbatch"
)

// fatal is what tests, fuzz targets and properties have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// again prints a policy in both spellings, reads each back as the stanza of the
// same job, and wants the same policy.
func again(t fatal, job *jobfile.Job, p tuning.Policy) {
	t.Helper()
	hcl := stanza.Print(p)
	printed, err := nomadhcl.Parse("printed.hcl", []byte(wrap(hcl)), nil)
	if err != nil {
		t.Fatalf("what was printed is not read: %v\n%s", err, hcl)
	}
	same(t, job, printed, p, hcl)
	lines := stanza.PrintLines(p)
	printed, err = sbatch.Parse("printed.sh", []byte("#!/bin/sh\n"+lines))
	if err != nil {
		t.Fatalf("what was printed is not read: %v\n%s", err, lines)
	}
	same(t, job, printed, p, lines)
}

func same(t fatal, job, printed *jobfile.Job, p tuning.Policy, text string) {
	t.Helper()
	twin := *job
	twin.Stanza = printed.Stanza
	got, err := stanza.Policy(&twin)
	if err != nil {
		t.Fatalf("what was printed is not accepted: %v\n%s", err, text)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Fatalf("printed and read again (-want +got):\n%s\n%s", diff, text)
	}
}

func TestEveryPolicyThatIsPrintedReadsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policies().Draw(t, "policy")
		again(t, &jobfile.Job{}, p)
	})
}

// policies draws valid policies.
func policies() *rapid.Generator[tuning.Policy] {
	return rapid.Custom(func(t *rapid.T) tuning.Policy {
		p := tuning.DefaultPolicy()
		p.Mode = rapid.SampledFrom(tuning.Modes()).Draw(t, "mode")
		p.Objective = rapid.SampledFrom(tuning.Objectives()).Draw(t, "objective")
		if p.Objective == tuning.Blend {
			p.Weight = rapid.Float64Range(0, 1).Draw(t, "weight")
		}
		if rapid.Bool().Draw(t, "bounded") {
			p.MaxSlowdown = rapid.Float64Range(1, 1e300).Draw(t, "max_slowdown")
		}
		p.Knobs = knobs(t)
		text := rapid.StringMatching(`[ -~]{1,20}`)
		if rapid.Bool().Draw(t, "report") {
			p.Progress = tuning.Progress{Report: true, Total: rapid.IntRange(0, 1e9).Draw(t, "total")}
		} else if rapid.Bool().Draw(t, "pattern") {
			around := rapid.StringMatching(`[a-z "'$%{}#,=]{0,9}`)
			p.Progress = tuning.Progress{
				Pattern: "(?P<epoch>\\d+)" + strings.ReplaceAll(around.Draw(t, "rest"), "{", `\{`) + "${x}$$\\{y}(?P<quality>.)",
				File:    rapid.OneOf(rapid.Just(""), text).Draw(t, "file"),
			}
		}
		if p.Progress.IsSet() && rapid.Bool().Draw(t, "quality") {
			p.Quality = &tuning.Quality{
				Direction: rapid.SampledFrom([]string{"max", "min"}).Draw(t, "direction"),
				MaxLoss:   rapid.Float64Range(0, 1).Draw(t, "max_loss"),
			}
			if rapid.Bool().Draw(t, "has a target") {
				p.Quality.Target = new(rapid.Float64().Draw(t, "target") + 0)
			}
		}
		if p.Quality != nil && rapid.Bool().Draw(t, "search") {
			p.Knobs = append(p.Knobs, tuning.Knob{Name: "opt", Arg: "--opt", Values: []tuning.Value{tuning.Word("a=b"), tuning.Number(-1.5)}})
			for i := range p.Knobs[:len(p.Knobs)-1] {
				if k := &p.Knobs[i]; k.Follows == "" && p.Learns(k.Name) && rapid.Bool().Draw(t, "conditional") {
					k.When = &tuning.Condition{Knob: "opt", Value: rapid.SampledFrom(p.Knobs[len(p.Knobs)-1].Values).Draw(t, "when")}
				}
			}
			p.Quality.Measures = rapid.SampledFrom([][]string{nil, {"quality"}, {"quality", "cost", "time"}}).Draw(t, "measures")
			p.Search = search(t, &p.Progress.Total)
		} else if p.Quality != nil {
			for _, name := range rapid.SampledFrom([][]string{nil, {"widen"}, {"b", "a"}}).Draw(t, "actions") {
				p.Actions = append(p.Actions, tuning.Offer{Name: name, Max: rapid.IntRange(1, 1e9).Draw(t, "max"), Explore: rapid.IntRange(0, 1e9).Draw(t, "explore")})
			}
		}
		count := rapid.IntRange(0, 1e9)
		p.Profile = tuning.ProfileSpec{WarmupEpochs: count.Draw(t, "warmup"), Epochs: 1 + count.Draw(t, "epochs")%1e6}
		if rapid.Bool().Draw(t, "checkpoint") {
			p.Checkpoint = &tuning.Checkpoint{
				Signal: rapid.SampledFrom([]string{"SIGUSR1", "SIGTERM"}).Draw(t, "signal"),
				Grace:  time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "grace")),
				Exit:   rapid.IntRange(1, 255).Draw(t, "exit"),
				Done:   rapid.StringMatching(`[a-z ,"']{0,9}`).Draw(t, "done"),
			}
		}
		p.Budget = tuning.Budget{
			Energy:   tuning.Joules(rapid.Float64Range(0, math.MaxFloat64).Draw(t, "energy")),
			Time:     time.Duration(rapid.Int64Range(0, int64(1e6*time.Hour)).Draw(t, "time")),
			Restarts: count.Draw(t, "restarts"),
			Probes:   count.Draw(t, "probes"),
			Returns:  count.Draw(t, "returns"),
		}
		return p
	})
}

// search draws a search, of whose epochs the job file says the total or not.
func search(t *rapid.T, total *int) *tuning.Search {
	s := tuning.Search{
		Method: rapid.SampledFrom(tuning.SearchMethods()).Draw(t, "method"), System: rapid.SampledFrom(tuning.SystemModes()).Draw(t, "system"),
		Trials: rapid.IntRange(1, 1e9).Draw(t, "trials"), Parallel: rapid.IntRange(1, 1e9).Draw(t, "parallel"),
		Epochs: rapid.IntRange(1, 1e9).Draw(t, "whole epochs"), Eta: rapid.IntRange(2, 1e9).Draw(t, "eta"),
		Seed: rapid.Uint64Range(0, 1<<53).Draw(t, "seed"), Failures: rapid.IntRange(0, 1e9).Draw(t, "failures"),
		Energy:    tuning.Joules(rapid.Float64Range(0, 1e300).Draw(t, "joules of all trials")),
		Time:      time.Duration(rapid.Int64Range(0, int64(1e6*time.Hour)).Draw(t, "time of the search")),
		CoreHours: rapid.Float64Range(0, 1e300).Draw(t, "core-hours"),
	}
	s.MinEpochs = rapid.IntRange(0, s.Epochs-1).Draw(t, "min_epochs")
	if *total > 0 {
		*total = max(*total, s.Epochs)
	}
	return &s
}

func knobs(t *rapid.T) []tuning.Knob {
	var out []tuning.Knob
	if rapid.Bool().Draw(t, "cores") {
		out = append(out, tuning.Knob{Name: tuning.Cores, Values: []tuning.Value{tuning.Number(1), tuning.Number(8)}},
			tuning.Knob{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores})
	}
	if rapid.Bool().Draw(t, "memory") {
		low := rapid.Int64Range(1, 1<<50).Draw(t, "low")
		out = append(out, tuning.Knob{
			Name: tuning.Memory, Min: tuning.Number(float64(low)), Max: tuning.Number(float64(low) * 2),
			Scale: rapid.SampledFrom(tuning.Scales()).Draw(t, "scale"),
		})
	}
	value := rapid.OneOf(
		rapid.Map(rapid.StringMatching(`[A-Za-z0-9_.,:+%/@{}=-]{1,10}`), tuning.ParseValue),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) tuning.Value { return tuning.Number(f + 0) }),
	)
	for i := range rapid.IntRange(0, 3).Draw(t, "hyperparameters") {
		k := tuning.Knob{
			Name:    "h" + string(rune('a'+i)),
			Values:  rapid.SliceOfNDistinct(value, 1, 4, func(v tuning.Value) tuning.Value { return v }).Draw(t, "values"),
			Default: value.Draw(t, "default"),
			Quality: rapid.SampledFrom([]string{"", tuning.QualitySame}).Draw(t, "quality of the knob"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "carrier") {
		case 0:
			k.Env = "H" + k.Name
		case 1:
			k.Arg = "--" + k.Name
		default:
			k.Live = true
		}
		out = append(out, k)
	}
	return out
}

// accept judges a stanza that a fuzz target found, and holds what is accepted to
// being printable.
func accept(t *testing.T, job *jobfile.Job) {
	t.Helper()
	p, err := stanza.Policy(job)
	if err != nil {
		return
	}
	stanza.Own(job, p)
	again(t, job, p)
}

func seeds(f *testing.F, folder, ext string) {
	f.Helper()
	for _, s := range inputs(f, folder) {
		if strings.HasSuffix(s.Name, ext) {
			f.Add(string(s.Data))
		}
	}
}

func FuzzSbatch(f *testing.F) {
	seeds(f, "valid", ".sh")
	seeds(f, "invalid", ".sh")
	f.Fuzz(func(t *testing.T, src string) {
		if job, err := sbatch.Parse("job.sh", []byte(src)); err == nil {
			accept(t, job)
		}
	})
}

func FuzzNomadHCL(f *testing.F) {
	seeds(f, "valid", ".hcl")
	seeds(f, "invalid", ".hcl")
	f.Fuzz(func(t *testing.T, src string) {
		if job, err := nomadhcl.Parse("job.hcl", []byte(src), nil); err == nil {
			accept(t, job)
		}
	})
}

func FuzzJSON(f *testing.F) {
	seeds(f, "valid", ".json")
	seeds(f, "invalid", ".json")
	f.Fuzz(func(t *testing.T, src string) {
		if job, err := read("stanza.json", []byte(src)); err == nil {
			accept(t, job)
		}
	})
}

// FuzzPolicy writes the found text into each kind of key, so that the judging is
// reached without the luck of a whole job file.
func FuzzPolicy(f *testing.F) {
	f.Add("adam", "32", "cores")
	f.Add("(?P<epoch>\\d+)", "1e-3", "lr")
	f.Add("a\tb$${x}%%{'\"", "-0", "power_limit")
	f.Add("2MJ", "4GiB", "memory")
	f.Fuzz(func(t *testing.T, text, value, name string) {
		bare := func(s string) jobfile.Value { return jobfile.Value{Kind: jobfile.Bare, Text: s} }
		attr := func(key, s string) jobfile.Attr { return jobfile.Attr{Name: key, Value: bare(s)} }
		for _, k := range stanza.Keys() {
			b := &jobfile.Block{Type: k.Block, Attrs: []jobfile.Attr{attr(k.Name, text)}}
			top := &jobfile.Block{Blocks: []*jobfile.Block{b}}
			switch k.Block {
			case "":
				top = &jobfile.Block{Attrs: []jobfile.Attr{attr(k.Name, text), attr("objective", "blend")}}
			case "knob":
				b.Label = name
				b.Attrs = append(b.Attrs, attr("values", value), attr("env", "X"), attr("default", value))
			case "action":
				b.Label = name
				top.Blocks = append(top.Blocks, &jobfile.Block{Type: "quality", Attrs: []jobfile.Attr{attr("direction", "min")}},
					&jobfile.Block{Type: "progress", Attrs: []jobfile.Attr{attr("report", "true")}})
			case "progress":
				b.Attrs = append(b.Attrs, attr("pattern", "(?P<epoch>.)"))
			case "checkpoint":
				b.Attrs = append(b.Attrs, attr("exit", "1"))
			case "search":
				top.Blocks = append(top.Blocks, &jobfile.Block{Type: "knob", Label: name, Attrs: []jobfile.Attr{attr("values", value), attr("env", "X")}},
					&jobfile.Block{Type: "progress", Attrs: []jobfile.Attr{attr("pattern", "(?P<epoch>.)(?P<total>.)(?P<loss>.)")}})
			}
			if p, err := stanza.Policy(&jobfile.Job{Stanza: top}); err == nil {
				again(t, &jobfile.Job{}, p)
			}
		}
	})
}
