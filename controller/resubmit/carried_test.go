package resubmit_test

import (
	"slices"
	"testing"

	"pitchpipe/controller/resubmit"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestOnlyKnobsThatReachTheJobAreTuned(t *testing.T) {
	t.Parallel()
	all := driver.Capabilities{Env: true, Args: true, Live: true, MemoryReturns: true}
	policy := tuning.Policy{Mode: tuning.Apply, Knobs: []tuning.Knob{
		{Name: tuning.Cores},
		{Name: tuning.Memory},
		{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores},
		{Name: "lr", Arg: "--lr"},
		{Name: "batch", Live: true},
		{Name: "both", Env: "BOTH", Arg: "--both"},
	}}
	for _, c := range []struct {
		name string
		caps func(*driver.Capabilities)
		left []string
	}{
		{"a scheduler that can do all carries all", func(*driver.Capabilities) {}, nil},
		{"without an environment", func(c *driver.Capabilities) { c.Env = false }, []string{"threads", "both"}},
		{"without a command line", func(c *driver.Capabilities) { c.Args = false }, []string{"lr", "both"}},
		{"without a settings file", func(c *driver.Capabilities) { c.Live = false }, []string{"batch"}},
		{"where a kill for memory is final, memory is not touched", func(c *driver.Capabilities) { c.MemoryReturns = false }, []string{"memory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			caps := all
			c.caps(&caps)
			got, left := resubmit.Carried(policy, caps)
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
