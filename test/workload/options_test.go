package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestBadFlagsAndVariablesAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		env  func(string) string
		want string
	}{
		"no epochs":                 {args: []string{"--epochs", "0"}, want: "--epochs"},
		"epochs that are no number": {args: []string{"--epochs", "many"}, want: "epochs"},
		"input zero":                {args: []string{"--input", "0"}, want: "--input"},
		"scale zero":                {args: []string{"--scale", "0"}, want: "--scale"},
		"scale that is no number":   {args: []string{"--scale", "NaN"}, want: "--scale"},
		"negative growth":           {args: []string{"--grow", "-1"}, want: "--grow"},
		"negative length":           {args: []string{"--epoch-seconds", "-1"}, want: "--epoch-seconds"},
		"endless length":            {args: []string{"--epoch-seconds", "inf"}, want: "--epoch-seconds"},
		"unknown flag":              {args: []string{"--epoch", "1"}, want: "epoch"},
		"argument left over":        {args: []string{"--epochs", "3", "now"}, want: `"now"`},
		"no threads":                {env: env("THREADS", "0"), want: "THREADS"},
		"half a thread":             {env: env("THREADS", "1.5"), want: "THREADS"},
		"too many threads":          {env: env("THREADS", "99999999"), want: "THREADS"},
		"empty batches":             {env: env("BATCH_SIZE", "0"), want: "BATCH_SIZE"},
		"batch that is a word":      {env: env("BATCH_SIZE", "large"), want: "BATCH_SIZE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			getenv := c.env
			if getenv == nil {
				getenv = env()
			}
			_, err := parse("dense", c.args, getenv, io.Discard)
			if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want ErrUsage that names %s", err, c.want)
			}
		})
	}
}

func TestWhatIsNotSetHasADefault(t *testing.T) {
	t.Parallel()
	o, err := parse("dense", nil, env(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p := o.params
	if p.epochs != 40 || p.input != 1 || p.batch != 8 || p.team.threads != 1 || p.scale != 1 || o.state != "" {
		t.Errorf("got %+v", o)
	}
}

func TestFlagsAndVariablesAreRead(t *testing.T) {
	t.Parallel()
	args := strings.Fields("--epochs 7 --input 3 --seed 9 --state s --grow 5 --epoch-seconds 0.25 --journal j --scale 0.5")
	o, err := parse("tick", args, env("THREADS", "3", "BATCH_SIZE", "64"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p := o.params
	if p.epochs != 7 || p.input != 3 || p.seed != 9 || p.batch != 64 || p.team.threads != 3 || p.scale != 0.5 ||
		p.epochLength != 250*time.Millisecond || p.journal != "j" {
		t.Errorf("parameters %+v", p)
	}
	if o.state != "s" || o.growMB != 5 {
		t.Errorf("options %+v", o)
	}
}

func TestHelpIsNotAnError(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	_, err := parse("dense", []string{"--help"}, env(), &said)
	if !errors.Is(err, flag.ErrHelp) || errors.Is(err, errUsage) || !strings.Contains(said.String(), "-epochs") {
		t.Errorf("error %v, said %q", err, said.String())
	}
}

func TestInputsDifferInSizeByLessThanAThird(t *testing.T) {
	t.Parallel()
	first := params{input: 1, scale: 1}.size(1000, 1)
	sizes := map[int]bool{}
	for input := 1; input <= 3; input++ {
		n := params{input: input, scale: 1}.size(1000, 1)
		if n < first*7/10 || n > first*13/10 {
			t.Errorf("input %d is %d, the first is %d", input, n, first)
		}
		sizes[n] = true
	}
	if len(sizes) != 3 {
		t.Errorf("three inputs have %d sizes", len(sizes))
	}
	if got := (params{input: 1, scale: 0.001}).size(1000, 10); got != 10 {
		t.Errorf("size %d, want the least of 10", got)
	}
}

func TestStreamsOfDifferentUseDiffer(t *testing.T) {
	t.Parallel()
	type seeds struct{ a, b uint64 }
	seen := map[seeds]string{}
	for input := 1; input <= 3; input++ {
		for seed := uint64(1); seed <= 3; seed++ {
			for n := range uint64(3) {
				a, b := params{input: input, seed: seed}.stream(n)
				if was, ok := seen[seeds{a, b}]; ok {
					t.Errorf("input %d, seed %d, stream %d is the same as %s", input, seed, n, was)
				}
				seen[seeds{a, b}] = "an earlier one"
			}
		}
	}
}
