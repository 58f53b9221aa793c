package tuning_test

import (
	"slices"
	"testing"

	"pitchpipe/controller/tuning"
)

func TestOnlyKnobsThatReachTheJobAreTuned(t *testing.T) {
	t.Parallel()
	all := tuning.Reach{Env: true, Args: true, Live: true, Memory: true}
	policy := tuning.Policy{Mode: tuning.Apply, Knobs: []tuning.Knob{
		{Name: tuning.Cores},
		{Name: tuning.Memory},
		{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores},
		{Name: "lr", Arg: "--lr"},
		{Name: "batch", Live: true},
		{Name: "both", Env: "BOTH", Arg: "--both"},
	}}
	for _, c := range []struct {
		name  string
		reach func(*tuning.Reach)
		left  []string
	}{
		{"a scheduler that can do all carries all", func(*tuning.Reach) {}, nil},
		{"without an environment", func(c *tuning.Reach) { c.Env = false }, []string{"threads", "both"}},
		{"without a command line", func(c *tuning.Reach) { c.Args = false }, []string{"lr", "both"}},
		{"without a settings file", func(c *tuning.Reach) { c.Live = false }, []string{"batch"}},
		{"where a kill for memory is final, memory is not touched", func(c *tuning.Reach) { c.Memory = false }, []string{"memory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reach := all
			c.reach(&reach)
			got := policy.Carried(reach)
			var left []string
			for _, l := range got.Limits {
				left = append(left, l.Knob)
			}
			if !slices.Equal(left, c.left) {
				t.Errorf("left alone are %q, want %q", left, c.left)
			}
			if got.Mode != policy.Mode || len(got.Knobs)+len(left) != len(policy.Knobs) {
				t.Errorf("the policy is %+v", got)
			}
			for _, k := range got.Knobs {
				if slices.Contains(left, k.Name) {
					t.Errorf("%s is left alone and tuned", k.Name)
				}
			}
		})
	}
	if len(policy.Knobs) != 6 {
		t.Error("the policy that was given has changed")
	}
}
