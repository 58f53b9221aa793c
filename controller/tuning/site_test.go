package tuning_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func TestNarrow(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	policy := func(knobs ...tuning.Knob) tuning.Policy {
		return tuning.Policy{
			Mode: tuning.Apply, Knobs: knobs, Checkpoint: &tuning.Checkpoint{Signal: "SIGUSR1"}, Budget: tuning.Budget{Restarts: 2},
		}
	}
	cores := tuning.Knob{Name: "cores", Values: numbers(1, 2, 4, 8)}
	for _, c := range []struct {
		name  string
		site  tuning.Site
		knobs []tuning.Knob
		own   tuning.Settings
		want  []tuning.Knob
	}{
		{
			"cores above those asked for are taken away",
			tuning.Site{},
			[]tuning.Knob{cores},
			tuning.Settings{"cores": n(4)},
			[]tuning.Knob{{Name: "cores", Values: numbers(1, 2, 4)}},
		},
		{
			"a site that opts in leaves them",
			tuning.Site{AboveRequest: true},
			[]tuning.Knob{cores},
			tuning.Settings{"cores": n(4)},
			[]tuning.Knob{cores},
		},
		{
			"a ceiling holds even where the site opts in",
			tuning.Site{AboveRequest: true, Ceilings: tuning.Settings{"cores": n(2)}},
			[]tuning.Knob{cores},
			tuning.Settings{"cores": n(4)},
			[]tuning.Knob{{Name: "cores", Values: numbers(1, 2)}},
		},
		{
			"the lower of ceiling and request counts",
			tuning.Site{Ceilings: tuning.Settings{"cores": n(6)}},
			[]tuning.Knob{cores},
			tuning.Settings{"cores": n(2)},
			[]tuning.Knob{{Name: "cores", Values: numbers(1, 2)}},
		},
		{
			"a list of which nothing is left goes, and the ceiling does not become a value",
			tuning.Site{Ceilings: tuning.Settings{"cores": n(6)}},
			[]tuning.Knob{{Name: "cores", Values: numbers(8, 16)}},
			tuning.Settings{"cores": n(8)},
			nil,
		},
		{
			"a range is cut",
			tuning.Site{},
			[]tuning.Knob{{Name: "memory", Min: n(1 << 20), Max: n(1 << 30)}},
			tuning.Settings{"memory": n(1 << 25)},
			[]tuning.Knob{{Name: "memory", Min: n(1 << 20), Max: n(1 << 25)}},
		},
		{
			"a range that begins above the ceiling goes",
			tuning.Site{},
			[]tuning.Knob{{Name: "memory", Min: n(1 << 26), Max: n(1 << 30)}},
			tuning.Settings{"memory": n(1 << 25)},
			nil,
		},
		{
			"a range open above is closed",
			tuning.Site{},
			[]tuning.Knob{{Name: "gpus", Min: n(1)}},
			tuning.Settings{"gpus": n(2)},
			[]tuning.Knob{{Name: "gpus", Min: n(1), Max: n(2)}},
		},
		{
			"a knob that allows nothing does not begin to",
			tuning.Site{Ceilings: tuning.Settings{"x": n(4)}},
			[]tuning.Knob{{Name: "x", Default: n(1)}},
			nil,
			[]tuning.Knob{{Name: "x", Default: n(1)}},
		},
		{
			"a follower has its own ceiling",
			tuning.Site{Ceilings: tuning.Settings{"threads": n(2)}},
			[]tuning.Knob{cores, {Name: "threads", Follows: "cores"}},
			nil,
			[]tuning.Knob{cores, {Name: "threads", Follows: "cores", Max: n(2)}},
		},
		{
			"knobs that the site does not name go",
			tuning.Site{Knobs: []string{"cores"}},
			[]tuning.Knob{cores, {Name: "lr", Min: n(0.1), Max: n(1)}},
			nil,
			[]tuning.Knob{cores},
		},
		{
			"an empty list of knobs forbids all", tuning.Site{Knobs: []string{}}, []tuning.Knob{cores}, nil, nil,
		},
		{
			"words have no ceiling",
			tuning.Site{Ceilings: tuning.Settings{"optimizer": n(1)}},
			[]tuning.Knob{{Name: "optimizer", Values: []tuning.Value{tuning.Word("sgd"), n(2)}}},
			nil,
			[]tuning.Knob{{Name: "optimizer", Values: []tuning.Value{tuning.Word("sgd")}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := policy(slices.Clone(c.knobs)...)
			got := c.site.Narrow(before, c.own)
			if diff := cmp.Diff(c.want, got.Knobs); diff != "" {
				t.Errorf("knobs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(policy(c.knobs...), before); diff != "" {
				t.Errorf("the owner's policy changed:\n%s", diff)
			}
		})
	}
}

func TestNarrowBoundsModeAndRestarts(t *testing.T) {
	t.Parallel()
	p := tuning.Policy{Mode: tuning.Apply, Checkpoint: &tuning.Checkpoint{}, Budget: tuning.Budget{Restarts: 3}}
	strict := tuning.Site{MaxMode: tuning.Recommend, JobRestarts: 1}.Narrow(p, nil)
	if strict.Mode != tuning.Recommend || strict.Budget.Restarts != 1 || strict.Checkpoint != nil {
		t.Errorf("narrowed to %+v", strict)
	}
	loose := tuning.Site{MaxMode: tuning.Apply, JobRestarts: 9, MayRestart: true}.Narrow(p, nil)
	if loose.Mode != tuning.Apply || loose.Budget.Restarts != 3 || loose.Checkpoint == nil {
		t.Errorf("a site that allows more gave %+v", loose)
	}
	if d := tuning.DefaultSite(); d.MaxMode != tuning.Recommend || d.AboveRequest || d.Control != 0.10 || d.EnforceModel {
		t.Errorf("default site %+v", d)
	}
}

// A site only ever takes away: modes do not rise, no value becomes allowed, and
// none above a ceiling or the owner's request stays.
func TestNarrowNeverWidens(t *testing.T) {
	t.Parallel()
	names := []string{"cores", "memory", "gpus", "threads", "lr"}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Map(rapid.IntRange(0, 5000), func(i int) tuning.Value { return tuning.Number(float64(i) / 2) })
		p := tuning.Policy{
			Mode: rapid.SampledFrom(tuning.Modes()).Draw(t, "mode"), Budget: tuning.Budget{
				Restarts: rapid.IntRange(0, 5).Draw(t, "restarts"), Returns: rapid.IntRange(0, 5).Draw(t, "returns"),
			},
		}
		for i, name := range names {
			p.Knobs = append(p.Knobs, anyKnob(name, names[:i]).Draw(t, name))
		}
		site := tuning.Site{
			MaxMode:      rapid.SampledFrom(tuning.Modes()).Draw(t, "max mode"),
			AboveRequest: rapid.Bool().Draw(t, "above request"), MayRestart: rapid.Bool().Draw(t, "may restart"),
			JobRestarts: rapid.IntRange(0, 5).Draw(t, "job restarts"), KindReturns: rapid.IntRange(0, 5).Draw(t, "kind returns"),
			Ceilings: rapid.MapOf(rapid.SampledFrom(names), number).Draw(t, "ceilings"),
		}
		if rapid.Bool().Draw(t, "names knobs") {
			site.Knobs = rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "knobs")
		}
		own := tuning.Settings(rapid.MapOf(rapid.SampledFrom(names), number).Draw(t, "own"))

		got := site.Narrow(p, own)
		if got.Mode.AtMost(p.Mode) != got.Mode || got.Mode.AtMost(site.MaxMode) != got.Mode {
			t.Fatalf("mode %s of %s under %s", got.Mode, p.Mode, site.MaxMode)
		}
		if got.Budget.Restarts > p.Budget.Restarts || site.JobRestarts > 0 && got.Budget.Restarts > site.JobRestarts {
			t.Fatalf("%d restarts of %d under %d", got.Budget.Restarts, p.Budget.Restarts, site.JobRestarts)
		}
		if got.Budget.Returns > p.Budget.Returns || site.KindReturns > 0 && got.Budget.Returns > site.KindReturns {
			t.Fatalf("%d returns of %d under %d", got.Budget.Returns, p.Budget.Returns, site.KindReturns)
		}
		for _, k := range got.Knobs {
			was, ok := p.Knob(k.Name)
			if !ok || site.Knobs != nil && !slices.Contains(site.Knobs, k.Name) {
				t.Fatalf("knob %s came from nowhere", k.Name)
			}
			tries := append(slices.Clone(was.Values), k.Min, k.Max, was.Min, was.Max, tuning.Word("auto"), site.Ceilings[k.Name], own[k.Name])
			tries = append(append(tries, k.Candidates(7)...), was.Candidates(7)...)
			for range 5 {
				tries = append(tries, number.Draw(t, "value"))
			}
			for _, v := range tries {
				if !k.Allows(v) {
					continue
				}
				if !was.Allows(v) {
					t.Fatalf("%s: %v was not allowed by %+v and is by %+v", k.Name, v, was, k)
				}
				if c, ok := site.Ceilings[k.Name]; ok && v.IsNumber() && v.Float() > c.Float() {
					t.Fatalf("%s: %v is above the ceiling %v", k.Name, v, c)
				}
				requested := slices.Contains([]string{"cores", "memory", "gpus"}, k.Name)
				if asked, ok := own[k.Name]; ok && requested && !site.AboveRequest && v.IsNumber() && v.Float() > asked.Float() {
					t.Fatalf("%s: %v is above the %v asked for", k.Name, v, asked)
				}
			}
		}
	})
}
